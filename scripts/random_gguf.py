#!/usr/bin/env python3
"""Writes a tiny language model for scripts/models: random weights, one token for each byte, about 300 KB.

    random_gguf.py FILE

The seed is fixed, so the file is always the same. Its answers mean nothing. They end, however: dimension 0 of every
embedding is a constant, which makes its column of the output matrix a bias for each token, and dimension 1 marks the
quote. With the biases below a text that a grammar allows to end does so after some dozen tokens, a value that may be
null mostly is, and a text is not empty.
"""

import sys

import gguf
import numpy

EMBEDDING, FEED_FORWARD, HEADS, CONTEXT = 64, 128, 4, 32768

TEMPLATE = "{% for message in messages %}[{{ message.role }}]\n{{ message.content }}\n{% endfor %}[assistant]\n"


def vocabulary():
    """Tokens, their scores and types, in the form of SentencePiece: a byte stands for itself, spaces have their own."""
    special = [("<unk>", gguf.TokenType.UNKNOWN), ("<s>", gguf.TokenType.CONTROL), ("</s>", gguf.TokenType.CONTROL)]
    tokens = special + [(f"<0x{byte:02X}>", gguf.TokenType.BYTE) for byte in range(256)]
    tokens.append(("\u2581", gguf.TokenType.NORMAL))
    return [text for text, _ in tokens], [0.0] * len(tokens), [int(kind) for _, kind in tokens]


def token(character):
    return 3 + ord(character)


def weights(size):
    random = numpy.random.default_rng(1)

    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) * 0.05).astype(numpy.float32)

    embedding, output = matrix(size, EMBEDDING), matrix(size, EMBEDDING)
    embedding[:, 0] = 1.0
    embedding[:, 1] = 0.0
    embedding[token('"'), 1] = 1.0
    # The norm before the output scales the constant dimension to about 6.5, or 5 after a quote.
    output[:, 0] = -4.0
    output[:, 1] = 0.0
    output[3 + 32 : 3 + 127, 0] = 0.0
    for character, bias in {'"': 0.6, "n": 1.0, "]": 0.6, "}": 0.6, ",": 0.6, " ": -1.0, "\\": -2.0}.items():
        output[token(character), 0] = bias
    output[token('"'), 1] = -3.0
    yield "token_embd.weight", embedding
    yield "output_norm.weight", numpy.ones(EMBEDDING, numpy.float32)
    yield "output.weight", output
    yield "blk.0.attn_norm.weight", numpy.ones(EMBEDDING, numpy.float32)
    yield "blk.0.ffn_norm.weight", numpy.ones(EMBEDDING, numpy.float32)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        yield f"blk.0.{part}.weight", matrix(EMBEDDING, EMBEDDING)
    yield "blk.0.ffn_gate.weight", matrix(FEED_FORWARD, EMBEDDING)
    yield "blk.0.ffn_up.weight", matrix(FEED_FORWARD, EMBEDDING)
    yield "blk.0.ffn_down.weight", matrix(EMBEDDING, FEED_FORWARD)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tokens, scores, types = vocabulary()
    writer = gguf.GGUFWriter(sys.argv[1], "llama")
    writer.add_name("random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    for name, values in weights(len(tokens)):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
