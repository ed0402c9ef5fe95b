"""Write a model that a real vLLM serves in a few megabytes: random weights, a tokenizer trained on the spot.

    python tiny_model.py FOLDER [words]

words: it answers in whole words only, which tokenize to themselves when they come back as text. Else its answers have
broken UTF-8 too.

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

STEMS = ["harbour", "ferry", "timber", "lantern", "meadow", "signal", "copper", "window", "river", "winter"]
ENDINGS = ["", "s", "ing", "ed", "ward", "less", "er"]


def train_tokenizer():
    """A byte-level BPE: any text goes in and comes out again. Numbers written as words give it pieces to merge."""
    rnd = random.Random(32)
    lines = (" ".join(rnd.choice(STEMS) + rnd.choice(ENDINGS) for _ in range(12)) + ".\n" for _ in range(3000))
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


def keep_words(model, tokenizer):
    """All tokens but whole words have the same low logit."""
    forms = [" " + stem + ending for stem in STEMS for ending in ENDINGS]
    words = [ids[0] for ids in (tokenizer.encode(form).ids for form in forms) if len(ids) == 1]
    head = torch.zeros(model.config.vocab_size, model.config.hidden_size)
    head[words] = torch.randn(len(words), model.config.hidden_size)
    model.lm_head.weight = torch.nn.Parameter(head)
    print(f"answers of {len(words)} words")


def main():
    folder, words = pathlib.Path(sys.argv[1]), len(sys.argv) > 2
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
        tie_word_embeddings=not words,
        initializer_range=0.3 if words else 0.02,  # wide: an answer hangs on all that is before, and seldom repeats itself
        bos_token_id=tokenizer.token_to_id(BOS),
        eos_token_id=tokenizer.token_to_id(EOS),
        pad_token_id=tokenizer.token_to_id(PAD),
    )
    model = transformers.LlamaForCausalLM(shape)
    if words:
        keep_words(model, tokenizer)
    model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    print(f"{folder}: {sum(p.numel() for p in model.parameters())} weights, {shape.vocab_size} tokens")


if __name__ == "__main__":
    if sys.argv[2:] not in ([], ["words"]) or len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
