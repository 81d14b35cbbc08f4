"""Models and data sets of the Hugging Face Hub: names, copies in the cache, and how they get there."""
