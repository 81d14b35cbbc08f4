from dataclasses import dataclass


@dataclass
class Config:
    clip: float = 0.2
    kl: float = 0.0


def credit(round, c):
    return {"advantage": round.reward}


def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
