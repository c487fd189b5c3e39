"""A tokenizer and sentences for the scripts beside this one, made on the spot."""
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

WORDS = "red blue old new small large house river stone bird walks sleeps falls sings over under near the a".split()


def sentences(n, length=60):
    rng = random.Random(1)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(length // 2, length))) for _ in range(n)]


def tokenizer():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(sentences(200), trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "</s>"]))
    return PreTrainedTokenizerFast(tokenizer_object=t, unk_token="<unk>", pad_token="<pad>", eos_token="</s>")
