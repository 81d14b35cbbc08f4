"""
Writes a Llama of 64 k random parameters, with a tokenizer of bytes and a chat template, to the
directory DIR: a stand-in for the model that the users of other frameworks already have.
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

directory = sys.argv[1]
specials = ["<|im_start|>", "<|im_end|>"]
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
tokens = Tokenizer(
    models.BPE(vocab={token: place for place, token in enumerate(alphabet)}, merges=[])
)
tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokens.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tokens,
    eos_token="<|im_end|>",
    pad_token="<|im_end|>",
    additional_special_tokens=specials,
    chat_template=TEMPLATE,
)
tokenizer.save_pretrained(directory)
torch.manual_seed(1)
config = LlamaConfig(
    vocab_size=len(tokenizer),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=256,
    eos_token_id=tokenizer.eos_token_id,
)
LlamaForCausalLM(config).save_pretrained(directory)
