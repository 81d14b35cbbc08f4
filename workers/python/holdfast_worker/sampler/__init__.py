"""The sampler role: Hugging Face and vLLM engines behind one `Worker`."""
