"""The heads that transformers_steps.py trains, their inputs, and GPU's autocast on the CPU."""
import itertools
import json
import pathlib

# The heads by the names that carma has for them: the library's class, PEFT's kind of task, and the modules that are
# trained beside adapters.
HEADS = {
    "": ("AutoModelForCausalLM", "CAUSAL_LM", None),
    "causal-lm": ("AutoModelForCausalLM", "CAUSAL_LM", None),
    "masked-lm": ("AutoModelForMaskedLM", None, None),
    "sequence-classification": ("AutoModelForSequenceClassification", "SEQ_CLS", None),
    "token-classification": ("AutoModelForTokenClassification", "TOKEN_CLS", None),
    "question-answering": ("AutoModelForQuestionAnswering", "QUESTION_ANS", None),
    "image-classification": ("AutoModelForImageClassification", None, ["classifier"]),
    "ctc": ("AutoModelForCTC", None, None),
    "conditional-generation": ("AutoModelForSeq2SeqLM", "SEQ_2_SEQ_LM", None),
    "contrastive": ("AutoModel", None, None),
    "model": ("AutoModel", None, None),
    "mask-generation": ("AutoModelForMaskGeneration", None, None),
    "mask-decoder": ("AutoModelForMaskGeneration", None, None),
}

# What autocast computes in 32 bits on a GPU and not on a CPU, of the functions that models call
# (PyTorch's documentation of autocast, "CUDA Ops that can autocast to float32").
FULL = ("layer_norm", "group_norm", "softmax", "log_softmax", "softplus", "pow", "__pow__", "rsqrt", "exp", "norm", "sum", "cumsum")


def hub(folder):
    """The tables of the hub's models, without those that are of the catalogue."""
    both = [m for name in ("hub.json", "hub_others.json") for m in json.loads((pathlib.Path(folder) / name).read_text())]
    return [m for m in both if "config" in m and "model_type" in m["config"]]


def configs(folder):
    return {name: m["config"] for m in hub(folder) for name in m["names"]}


def window(inputs_embeds, **_):
    """A mask of tokens that are near each other, the same for all samples."""
    batch, tokens = inputs_embeds.shape[:2]
    return inputs_embeds.new_ones(1, 1, tokens, tokens, dtype=bool).expand(batch, 1, tokens, tokens)


class Evenly(list):
    """Numbers from first to last, which are read while the model is made; those of a fake tensor cannot be."""

    def __init__(self, first, last, steps, **_):
        super().__init__(first + (last - first) * i / max(steps - 1, 1) for i in range(steps))

    def split(self, sizes):
        ends = list(itertools.accumulate(sizes))
        return [Part(self[end - n : end]) for n, end in zip(sizes, ends)]


class Part(list):
    def tolist(self):
        return self


def as_loaded(torch, model, config):
    """A T5 1.1 is made with a tied head; its checkpoint has another one, which from_pretrained keeps apart."""
    head = model.get_output_embeddings()
    if config.get("tie_word_embeddings") is False and head and head.weight is model.get_input_embeddings().weight:
        head.weight = torch.nn.Parameter(torch.empty_like(head.weight))


class Head:
    def __init__(self, row):
        self.name = row.get("head", "")
        self.single = row.get("attention") == "sdpa"
        self.target, self.image = int(row.get("target") or 0), int(row.get("image") or 0)

    def auto(self, transformers, kind):
        if kind == "whisper":
            return transformers.AutoModelForSpeechSeq2Seq
        if kind in ("wav2vec2", "hubert") and self.name == "sequence-classification":
            return transformers.AutoModelForAudioClassification
        return getattr(transformers, HEADS[self.name][0])

    def peft(self, kind):
        return None if kind == "whisper" else HEADS[self.name][1]

    def saved(self):
        return HEADS[self.name][2]

    def freeze(self, model):
        """What is not trained, as the library's notebook on fine-tuning SAM has it."""
        for name, p in model.named_parameters():
            if self.name == "mask-decoder" and name.startswith(("vision_encoder", "prompt_encoder")):
                p.requires_grad_(False)

    def set(self, config):
        for name in ("attention_probs_dropout_prob", "attention_dropout"):
            if self.name and self.single and hasattr(config, name):
                setattr(config, name, 0)  # the CPU's single kernel knows no dropout, a GPU's does

        if self.name == "sequence-classification":
            config.problem_type = "single_label_classification"
            config.pad_token_id = getattr(config, "pad_token_id", None) or 0
        if hasattr(config, "conv_stride"):
            # What depends on random numbers; the length of what is masked does not matter.
            config.layerdrop, config.apply_spec_augment = 0.0, False
        if self.name == "conditional-generation" and getattr(config, "decoder_start_token_id", None) is None:
            config.decoder_start_token_id = 0

    def inputs(self, torch, batch, seq, config, dtype):
        self.torch = torch

        def ids(*shape):
            return torch.zeros(*shape, dtype=torch.int64)

        def pixels(side):
            side = self.image or side
            own = {} if side == config_side or config.model_type.startswith(("dino", "beit", "convnext", "resnet")) else {"interpolate_pos_encoding": True}
            return own | {"pixel_values": torch.zeros(batch, 3, side, side, dtype=dtype)}

        config_side = getattr(config, "image_size", 0) or getattr(getattr(config, "vision_config", None), "image_size", 0)
        if config.model_type == "whisper":
            sound = torch.zeros(batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=dtype)
            return {"input_features": sound, "labels": ids(batch, self.target)}
        if hasattr(config, "conv_stride"):
            sound = {"input_values": torch.zeros(batch, seq, dtype=dtype)}
            return sound | {"labels": ids(batch)} if self.name == "sequence-classification" else sound
        if hasattr(config, "patch_size") or config.model_type == "resnet":
            image = pixels(getattr(config, "image_size", 224))
            return image if self.name == "model" else image | {"labels": ids(batch)}
        if self.name in ("mask-generation", "mask-decoder"):  # a box in each image
            side = config.vision_config.backbone_config.image_size[0] if config.model_type == "sam2" else config.vision_config.image_size
            boxes = {"input_boxes": torch.zeros(batch, 1, 4), "multimask_output": False}
            self.masks = torch.zeros(batch, 1, 1, side // 4, side // 4)
            return boxes | {"pixel_values": torch.zeros(batch, 3, side, side, dtype=dtype)}
        if self.name == "image-classification":
            return pixels(config.vision_config.image_size) | {"labels": ids(batch)}
        text = {"input_ids": ids(batch, seq)}
        match self.name:
            case "conditional-generation":
                return text | {"labels": ids(batch, self.target)}
            case "contrastive":
                return text | pixels(config.vision_config.image_size) | {"return_loss": True}
            case "sequence-classification":
                return text | {"labels": ids(batch)}
            case "question-answering":
                return text | {"start_positions": ids(batch), "end_positions": ids(batch)}
            case "model":
                return text
            case "" | "causal-lm":
                return text | {"labels": text["input_ids"]}
        return text | {"labels": ids(batch, seq)}

    def loss(self, out):
        if self.name == "model":
            return out.last_hidden_state.mean(1).mean()
        if self.name == "ctc":  # the loss reads its labels, which fake tensors have not; it is small
            return out.logits.float().log_softmax(-1).mean()
        if self.name in ("mask-generation", "mask-decoder"):
            return self.torch.nn.functional.binary_cross_entropy_with_logits(out.pred_masks.float(), self.masks)
        return out.loss


def attention(torch):
    """PyTorch's attention with what a GPU keeps: dropout within the kernel, and one kernel also if the mask is trained."""
    single = torch.nn.functional.scaled_dot_product_attention

    class Masked(torch.autograd.Function):
        # The memory-efficient kernel: it keeps its operands, the output and a sum for each row. The gradient of the
        # mask is there for each sample before it is summed up.
        @staticmethod
        def forward(ctx, q, k, v, mask):
            batch, heads, rows, width = q.shape
            out = q.new_empty(batch, rows, heads, v.shape[-1]).transpose(1, 2)
            sums = q.new_empty(batch, heads, rows, dtype=torch.float32)
            ctx.save_for_backward(q, k, v, mask, out, sums)
            return out

        @staticmethod
        def backward(ctx, grad):
            q, k, v, mask, out, sums = ctx.saved_tensors
            grads = [torch.empty_like(t) for t in (q, k, v)]
            if not ctx.needs_input_grad[3]:
                return *grads, None
            of_mask = mask.new_empty(q.shape[0], *mask.shape[1:])
            return *grads, of_mask if mask.shape[0] == q.shape[0] else of_mask.sum(0, keepdim=True)

    def attend(q, k, v, attn_mask=None, dropout_p=0.0, **more):
        if attn_mask is not None and attn_mask.is_floating_point():
            return Masked.apply(q, k, v, attn_mask.to(q.dtype))
        return single(q, k, v, attn_mask=attn_mask, **more)

    return attend


def as_on_a_gpu(torch):
    """Autocast computes in 32 bits what a GPU's does, also where a checkpointed block is computed again."""

    def widened(function):
        def call(*args, **kwargs):
            if torch.is_autocast_enabled("cpu"):
                args = [a.float() if isinstance(a, torch.Tensor) and a.dtype == torch.bfloat16 else a for a in args]
            return function(*args, **kwargs)

        return call

    def cross_entropy(x, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        """The softmax has the numbers of the logits, and the loss takes a copy of it in 32 bits (ATen/native/LossNLL.cpp)."""
        with torch.autocast("cpu", enabled=False):
            logs = torch.nn.functional.log_softmax(x, 1 if x.dim() > 1 else 0, dtype=x.dtype)
            assert label_smoothing == 0
            return torch.nn.functional.nll_loss(logs.float(), target, weight, ignore_index=ignore_index, reduction=reduction)

    plain_entropy = torch.nn.functional.cross_entropy
    torch.nn.functional.cross_entropy = lambda *args, **kwargs: (cross_entropy if torch.is_autocast_enabled("cpu") else plain_entropy)(*args, **kwargs)
    plain_norm = torch.linalg.vector_norm

    def vector_norm(x, *args, **kwargs):  # the result has 32 bits; the input stays as it is
        if not torch.is_autocast_enabled("cpu"):
            return plain_norm(x, *args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            return plain_norm(x, *args, **kwargs, dtype=torch.float32)

    torch.linalg.vector_norm = vector_norm
    for place in (torch, torch.nn.functional, torch.Tensor):
        for name in FULL:
            if hasattr(place, name):
                setattr(place, name, widened(getattr(place, name)))
