"""tokenizer.py: the SentencePiece model of the demo.

SPDX-License-Identifier: Apache-2.0

    python tokenizer.py --out DIR

Unigram with byte fallback and the special ids of umT5, trained on every
sentence of the grammar and on the words of this project's own README and
licence (words.txt), so that other text is split sensibly. Training does not
keep every word of the grammar in one piece, so the score of those words is
raised afterwards. Nothing depends on chance or on threads.
"""
import argparse
import io
import os

import sentencepiece as spm
import sentencepiece.sentencepiece_model_pb2 as proto

import data

VOCAB = 640
WORD_SCORE = -1.5


def sentences():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "words.txt")) as f:
        words = f.read().split()
    grammar = [data.prompt(c) for c in data.combinations()]
    grammar += [g.replace(" ,", ",") for g in grammar]
    return grammar * 4 + [" ".join(words[i:i + 8])
                          for i in range(0, len(words), 8)]


def grammar_words():
    return sorted({w for c in data.combinations()
                   for w in data.prompt(c).replace(",", "").split()})


def train(path):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()), model_writer=out,
        vocab_size=VOCAB - len(grammar_words()), model_type="unigram",
        byte_fallback=True,
        character_coverage=1.0, normalization_rule_name="identity",
        pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>",
        eos_piece="</s>", bos_piece="<s>", unk_piece="<unk>", num_threads=1,
        minloglevel=2)
    model = proto.ModelProto.FromString(out.getvalue())
    known = {p.piece: p for p in model.pieces}
    spare = 0
    for word in grammar_words():
        piece = known.get("\u2581" + word)
        if piece is None:
            piece = model.pieces.add(piece="\u2581" + word)
        else:
            spare += 1
        piece.score = WORD_SCORE
    for n in range(spare):                  # the size does not depend on it
        model.pieces.add(piece=f"<unused_{n}>", score=-100.0,
                         type=proto.ModelProto.SentencePiece.UNUSED)
    model.trainer_spec.vocab_size = VOCAB
    with open(path, "wb") as f:
        f.write(model.SerializeToString())


class Tokenizer:
    def __init__(self, path):
        self.sp = spm.SentencePieceProcessor(model_file=path)

    def __call__(self, text):
        return self.sp.encode(text) + [self.sp.eos_id()]


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True)
    a = p.parse_args()
    train(f"{a.out}/spiece.model")
    t = Tokenizer(f"{a.out}/spiece.model")
    for w in grammar_words():
        assert len(t.sp.encode(w)) == 1, (w, t.sp.encode(w, out_type=str))
