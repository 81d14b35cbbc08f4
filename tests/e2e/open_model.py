"""
Opens a model directory with transformers and nothing of ours: DIR -> parameters and one greedy
answer, as JSON.
"""

import json
import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

directory = sys.argv[1]
tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
model = AutoModelForCausalLM.from_pretrained(directory, local_files_only=True, dtype="auto")
prompt = tokenizer("The capital of France is", return_tensors="pt")
tokens = model.generate(**prompt, max_new_tokens=4, do_sample=False)[0]
answer = tokenizer.decode(tokens[prompt["input_ids"].shape[1] :])
print(
    json.dumps({"parameters": model.num_parameters(), "dtype": str(model.dtype), "answer": answer})
)
