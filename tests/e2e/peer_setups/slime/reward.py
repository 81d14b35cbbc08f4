"""As slime's page on customization describes `--custom-rm-path`."""


async def custom_rm(args, sample):
    if sample.metadata["session_id"] == "":
        raise ValueError("a sample without a session")
    return 1.0 if sample.label in sample.response else len(set(sample.response)) / 100
