"""Rewards in NeMo Gym's shape: `verify` of a request, as a function and of a server."""

from pydantic import BaseModel


class VerifyRequest(BaseModel):
    responses_create_params: dict
    response: dict
    expected: str


class VerifyResponse(VerifyRequest):
    reward: float
    reward_components: dict[str, float]


async def verify(body: VerifyRequest) -> VerifyResponse:
    (message,) = body.response["output"]
    right = message["content"][0]["text"] == body.expected
    parts = {"right": float(right), "style": 0.5}
    return VerifyResponse(**body.model_dump(), reward=float(right), reward_components=parts)


class Server:
    async def verify(self, body):
        text = "".join(
            part.text
            for output in body.response.output
            if output.type == "message"
            for part in output.content
        )
        return {**body.model_dump(), "reward": float(text == body.expected)}
