"""Write a model that a real vLLM serves in a few megabytes: random weights, a tokenizer trained on the spot.

    python tiny_model.py FOLDER

The answers mean nothing. What counts is real: a chat template, special tokens, safetensors, 8192 tokens of context.
torch, transformers and tokenizers come with vLLM.
"""

import json
import pathlib
import random
import sys

import tokenizers
import torch
import transformers

CONTEXT = 8192
BOS, EOS, PAD, START, END = "<s>", "</s>", "<pad>", "<|start|>", "<|end|>"

# Every message ends with END and a line feed, so that an answer sent back as a message continues the same tokens.
CHAT = (
    "{{ bos_token }}{% for m in messages %}"
    "<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def train_tokenizer():
    """A byte-level BPE: any text goes in and comes out again. Numbers written as words give it pieces to merge."""
    rnd = random.Random(32)
    stems = ["harbour", "ferry", "timber", "lantern", "meadow", "signal", "copper", "window", "river", "winter"]
    endings = ["", "s", "ing", "ed", "ward", "less", "er"]
    lines = (" ".join(rnd.choice(stems) + rnd.choice(endings) for _ in range(12)) + ".\n" for _ in range(3000))
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    t.train_from_iterator(
        lines,
        tokenizers.trainers.BpeTrainer(
            vocab_size=1024,
            special_tokens=[BOS, EOS, PAD, START, END],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return t


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_max_length": CONTEXT,
                "bos_token": BOS,
                "eos_token": EOS,
                "pad_token": PAD,
                "chat_template": CHAT,
            }
        )
    )
    torch.manual_seed(32)
    shape = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,  # vLLM's CPU attention takes 32, 64, 80, 96, 112, 128, 192 or 256
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.token_to_id(BOS),
        eos_token_id=tokenizer.token_to_id(EOS),
        pad_token_id=tokenizer.token_to_id(PAD),
    )
    model = transformers.LlamaForCausalLM(shape).to(torch.bfloat16)
    model.save_pretrained(folder)
    print(f"{folder}: {sum(p.numel() for p in model.parameters())} weights, {shape.vocab_size} tokens")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
