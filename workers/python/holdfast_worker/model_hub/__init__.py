"""Models of the Hugging Face Hub: their names, their copies in the cache, and how they get there."""
