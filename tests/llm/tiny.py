"""Makes tiny but real models of the llama architecture: GGUF files without a download or a library.

The weights are one-hot vectors and zeros, so that the logits are an exact table of what follows each token.
`say` utters SENTENCE and ends, `loop` never ends, `tool` answers with one tool call, `think` thinks THOUGHT
and then utters SENTENCE.
"""

from __future__ import annotations

import random
import struct
import sys
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

SENTENCE = (" Hello", "!", " I", " am", " a", " tiny", " test", " model", ";", " nothing", " more", ".")
THOUGHT = ("<think>", "\nLet me see.\n", "</think>", "\n\n")
CALL = ("<tool_call>", '\n{"name": "get_weather", ', '"arguments": {"city": ', '"Rome"}}\n', "</tool_call>")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOLS = (
    "{% if tools %}<|im_start|>system\n# Tools\nYou may call functions. Signatures are within "
    "<tools></tools>:\n<tools>{% for t in tools %}\n{{ t | tojson }}{% endfor %}\n</tools>\n"
    "For each call return JSON within "
    '<tool_call></tool_call>:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call><|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content %}{{ m.content }}{% endif %}"
    '{% for c in m.tool_calls or [] %}\n<tool_call>\n{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n"
    "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and "
    "enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
WIDTH = 384  # of an embedding; at least as many as there are tokens
HEADS = 8
ALIGN = 32
F32, F16 = 0, 1

_U16, _U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 2, 4, 5, 6, 7, 8, 9


class U16(int):
    """A number that the header holds in 16 bits."""


class I32(int):
    """A number that the header holds in 32 bits, with a sign."""


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def field(name: str, value: Any) -> bytes:
    """One key of the header with its value."""
    match value:
        case bool():
            body = struct.pack("<I?", _BOOL, value)
        case U16():
            body = struct.pack("<IH", _U16, value)
        case I32():
            body = struct.pack("<Ii", _I32, value)
        case int():
            body = struct.pack("<II", _U32, value)
        case float():
            body = struct.pack("<If", _F32, value)
        case str():
            body = struct.pack("<I", _STRING) + text(value)
        case F32s():
            body = struct.pack("<IIQ", _ARRAY, _F32, len(value)) + struct.pack(f"<{len(value)}f", *value)
        case list() if isinstance(value[0], str):
            body = struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(text, value))
        case list():
            body = struct.pack("<IIQ", _ARRAY, _I32, len(value)) + struct.pack(f"<{len(value)}i", *value)
        case _:
            raise TypeError(name)
    return text(name) + body


class F32s(list[float]):
    """Numbers that the header holds in 32 bits."""


Tensor = tuple[str, tuple[int, ...], int, bytes]


def gguf(fields: dict[str, Any], tensors: list[Tensor]) -> bytes:
    """A GGUF file of version 3. A tensor: name, shape with the fastest dimension first, type, bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    head += b"".join(field(name, value) for name, value in fields.items())
    data = bytearray()
    for name, shape, kind, values in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data))
        data += values + bytes(-len(values) % ALIGN)
    return head + bytes(-len(head) % ALIGN) + bytes(data)


def _byte_characters() -> list[str]:
    """What GPT-2 writes for each byte."""
    kept = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return [chr(byte) if byte in kept else chr(next(spare)) for byte in range(256)]


def model(mode: str = "say", **how: Any) -> bytes:
    """The bytes of a model, with the arguments of `parts`."""
    return gguf(*parts(mode, **how))


def shards(count: int, mode: str = "say", **how: Any) -> list[bytes]:
    """The files of a model in several: the first says what it is."""
    fields, tensors = parts(mode, **how)
    made = []
    for number in range(count):
        place = {"split.no": U16(number), "split.count": U16(count), "split.tensors.count": I32(len(tensors))}
        made.append(gguf({**fields, **place} if number == 0 else place, tensors[number::count]))
    return made


def write_shards(folder: Path, count: int, mode: str = "say", **how: Any) -> list[Path]:
    files = []
    for number, data in enumerate(shards(count, mode, **how), 1):
        files.append(folder / f"{mode}-{number:05}-of-{count:05}.gguf")
        files[-1].write_bytes(data)
    return files


def parts(
    mode: str = "say",
    *,
    name: str = "Tiny",
    context: int = 512,
    layers: int = 1,
    pad: int = 0,
    seed: int = 0,
    tuned: int = 0,
) -> tuple[dict[str, Any], list[Tensor]]:
    """Fields and tensors of a model. `pad`: another number is another file that says the same. `seed`: fill
    weights that have no effect with noise of this seed; of the first layer with that of `tuned`, if given."""
    characters = _byte_characters()
    spoken = {"tool": CALL, "think": (*THOUGHT, *SENTENCE)}.get(mode, SENTENCE)
    tokens, merges = list(characters), []
    for word in () if mode == "tool" else SENTENCE:
        letters = [characters[byte] for byte in word.encode()]
        for end in range(2, len(letters) + 1):
            if (whole := "".join(letters[:end])) not in tokens:
                tokens.append(whole)
                merges.append(f"{whole[:-1]} {letters[end - 1]}")
    extra = list({"tool": CALL, "think": THOUGHT}.get(mode, ()))
    tokens += [*SPECIAL, *extra]
    kinds = [3 if one in SPECIAL else 4 if one in extra else 1 for one in tokens]
    number = {token: at for at, token in enumerate(tokens)}
    assert len(tokens) <= WIDTH

    def token_of(word: str) -> int:
        return number[word if word in extra else "".join(characters[byte] for byte in word.encode())]

    chain = [token_of(word) for word in spoken]
    following = dict.fromkeys(range(len(tokens)), chain[0]) | dict(pairwise(chain))
    following[chain[-1]] = chain[0] if mode == "loop" else number["<|im_end|>"]
    one, weight = struct.pack("<e", 1.0), struct.pack("<e", 30 / WIDTH**0.5)
    embedding, output = bytearray(2 * WIDTH * len(tokens)), bytearray(2 * WIDTH * len(tokens))
    for at, after in following.items():
        embedding[2 * (at * WIDTH + at) : 2 * (at * WIDTH + at) + 2] = one
        output[2 * (after * WIDTH + at) : 2 * (after * WIDTH + at) + 2] = weight
    square, ones = (WIDTH, WIDTH), struct.pack("<f", 1.0) * WIDTH
    zeros = bytes(2 * WIDTH * WIDTH)
    tensors = [("token_embd.weight", (WIDTH, len(tokens)), F16, bytes(embedding))]
    for layer in range(layers):
        names = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
        for part in names:
            idle = part not in ("attn_output", "ffn_down")  # what these two are not given has no effect
            noise = (
                _noise(f"{tuned if tuned and not layer else seed}.{layer}.{part}") if seed and idle else zeros
            )
            tensors.append((f"blk.{layer}.{part}.weight", square, F16, noise))
        tensors += [(f"blk.{layer}.{part}.weight", (WIDTH,), F32, ones) for part in ("attn_norm", "ffn_norm")]
    tensors.append(("output_norm.weight", (WIDTH,), F32, ones))
    tensors.append(("output.weight", (WIDTH, len(tokens)), F16, bytes(output)))
    end = number["<|endoftext|>"]
    return (
        {
            "general.architecture": "llama",
            "general.name": name,
            "general.license": "CC0-1.0",
            "general.file_type": 1,
            "test.pad": pad,
            "llama.context_length": context,
            "llama.embedding_length": WIDTH,
            "llama.block_count": layers,
            "llama.feed_forward_length": WIDTH,
            "llama.attention.head_count": HEADS,
            "llama.attention.head_count_kv": HEADS,
            "llama.rope.dimension_count": WIDTH // HEADS,
            "llama.attention.layer_norm_rms_epsilon": 1e-5,
            "llama.vocab_size": len(tokens),
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.merges": merges or ["a b"],
            "tokenizer.ggml.bos_token_id": end,
            "tokenizer.ggml.eos_token_id": end,
            "tokenizer.ggml.eot_token_id": number["<|im_end|>"],
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.chat_template": {"tool": TOOLS, "think": THINKING}.get(mode, CHATML),
        },
        tensors,
    )


def _noise(seed: str) -> bytes:
    """Small numbers for a square tensor."""
    data = bytearray(random.Random(seed).randbytes(2 * WIDTH * WIDTH))
    data[1::2] = data[1::2].translate(bytes(byte & 0xBF for byte in range(256)))
    return bytes(data)


def projector() -> bytes:
    """A projector for such a model: it makes four patches of zeros of every picture."""
    wide = 32
    fields: dict[str, Any] = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "general.file_type": 1,
        "clip.has_vision_encoder": True,
        "clip.projector_type": "mlp",
        "clip.use_gelu": True,
        "clip.vision.image_size": 28,
        "clip.vision.patch_size": 14,
        "clip.vision.embedding_length": wide,
        "clip.vision.feed_forward_length": wide,
        "clip.vision.projection_dim": WIDTH,
        "clip.vision.block_count": 1,
        "clip.vision.attention.head_count": 4,
        "clip.vision.attention.layer_norm_epsilon": 1e-5,
        "clip.vision.image_mean": F32s([0.5, 0.5, 0.5]),
        "clip.vision.image_std": F32s([0.5, 0.5, 0.5]),
    }
    shapes: dict[str, tuple[tuple[int, ...], int]] = {
        "v.patch_embd.weight": ((14, 14, 3, wide), F16),
        "v.position_embd.weight": ((wide, 4), F32),
        "mm.0.weight": ((wide, WIDTH), F16),
        "mm.0.bias": ((WIDTH,), F32),
        "mm.2.weight": ((WIDTH, WIDTH), F16),
        "mm.2.bias": ((WIDTH,), F32),
    }
    for part in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"):
        shapes[f"v.blk.0.{part}.weight"] = ((wide, wide), F16)
        shapes[f"v.blk.0.{part}.bias"] = ((wide,), F32)
    for part in ("v.blk.0.ln1", "v.blk.0.ln2", "v.post_ln"):
        shapes |= {f"{part}.{end}": ((wide,), F32) for end in ("weight", "bias")}
    sizes = {F16: 2, F32: 4}
    return gguf(fields, [(name, *of, bytes(prod(of[0]) * sizes[of[1]])) for name, of in shapes.items()])


def write(path: Path, mode: str = "say", **how: Any) -> Path:
    """A file with a model."""
    path.write_bytes(model(mode, **how))
    return path


if __name__ == "__main__":
    write(Path(sys.argv[1]), *sys.argv[2:])
