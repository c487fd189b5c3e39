"""Maps the operators of PyTorch to types of layers."""

# Operators by their name without overload and trailing underscore.
TYPES = {
    "convolution": "conv", "_convolution": "conv", "mkldnn_convolution": "conv",
    "addmm": "linear", "mm": "linear", "addmv": "linear", "mv": "linear", "linear": "linear",
    "bmm": "matmul", "baddbmm": "matmul", "dot": "matmul",
    "embedding": "embedding", "_embedding_bag": "embedding_bag", "embedding_bag": "embedding_bag",
    "native_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_functional": "batch_norm", "cudnn_batch_norm": "batch_norm",
    "_batch_norm_with_update": "batch_norm", "native_layer_norm": "layer_norm", "native_group_norm": "group_norm",
    "_fused_rms_norm": "rms_norm", "rms_norm": "rms_norm",
    "relu": "relu", "hardtanh": "relu6", "leaky_relu": "leaky_relu", "prelu": "prelu", "_prelu_kernel": "prelu",
    "elu": "elu", "celu": "elu", "gelu": "gelu", "silu": "silu", "mish": "mish", "softplus": "softplus",
    "tanh": "tanh", "sigmoid": "sigmoid", "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid",
    "_softmax": "softmax", "_safe_softmax": "softmax", "_log_softmax": "log_softmax",
    "native_dropout": "dropout", "max_pool2d_with_indices": "max_pool", "max_pool3d_with_indices": "max_pool",
    "max_pool2d": "max_pool", "avg_pool2d": "avg_pool", "avg_pool3d": "avg_pool", "mean": "mean",
    "_adaptive_avg_pool2d": "mean", "_adaptive_avg_pool3d": "mean",
    "upsample_nearest2d": "upsample", "upsample_bilinear2d": "upsample", "upsample_nearest1d": "upsample",
    "upsample_bicubic2d": "upsample", "upsample_linear1d": "upsample", "upsample_nearest3d": "upsample",
    "upsample_trilinear3d": "upsample", "_upsample_bilinear2d_aa": "upsample",
    "constant_pad_nd": "pad", "reflection_pad2d": "pad", "replication_pad2d": "pad", "reflection_pad1d": "pad",
    "add": "add", "sub": "add", "rsub": "add", "mul": "mul", "div": "mul", "cat": "concat", "stack": "concat",
    "clone": "copy", "_to_copy": "copy", "contiguous": "copy", "copy": "copy", "roll": "copy", "_unsafe_view": "copy",
    "_scaled_dot_product_flash_attention_for_cpu": "attention", "_scaled_dot_product_flash_attention": "attention",
    "nll_loss_forward": "loss", "nll_loss2d_forward": "loss",
    "mse_loss": "loss", "l1_loss": "loss", "smooth_l1_loss": "loss", "huber_loss": "loss",
    "binary_cross_entropy": "loss", "binary_cross_entropy_with_logits": "loss", "kl_div": "loss",
    "_ctc_loss": "loss", "mkldnn_rnn_layer": "recurrent",
}

# Functions that keep their own output; others keep their input.
KEEP_OUTPUT = {"relu", "tanh", "sigmoid", "softmax", "log_softmax", "attention", "exp",
               "sqrt", "rsqrt"}


def name_of(func):
    """aten.add_.Tensor: ("add", in place)."""
    text = str(getattr(func, "overloadpacket", func)).split(".")[-1]
    inplace = text.endswith("_") and not text.endswith("__")
    return (text[:-1] if inplace else text), inplace


def type_of(name, args, training_weight):
    """training_weight: one of the operands is a parameter."""
    kind = TYPES.get(name, "other")
    if kind == "linear" and not training_weight:
        kind = "matmul"
    if kind == "matmul" and training_weight:
        kind = "linear"
    if kind == "conv" and len(args) > 6 and args[6] is True:
        kind = "conv_transpose"
    if kind == "elu" and len(args) > 2 and abs(float(args[2]) - 1.0507) < 1e-3:
        kind = "selu"
    if kind == "relu6" and not (len(args) > 2 and args[1] == 0 and args[2] == 6):
        kind = "relu"
    return kind


def one(value):
    """The same number in each direction, or the first."""
    if isinstance(value, (list, tuple)):
        return int(value[0]) if value else 1
    return int(value)


def shape_without_computing(name, args):
    """The output's shape of a slow operator; None: it is not slow."""
    if name == "addmm":
        return (args[1].shape[0], args[2].shape[1])
    if name == "mm":
        return (args[0].shape[0], args[1].shape[1])
    if name == "bmm":
        return (args[0].shape[0], args[0].shape[1], args[1].shape[2])
    if name == "baddbmm":
        return (args[1].shape[0], args[1].shape[1], args[2].shape[2])
    if name == "convolution":
        return _convolved(*args[:9])
    return None


def _convolved(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    dims = len(weight.shape) - 2

    def at(v, i):
        return v[i] if len(v) > 1 else v[0]

    out = []
    for i in range(dims):
        size, kernel = x.shape[-dims + i], weight.shape[2 + i]
        s, p, d = at(stride, i), at(padding, i), at(dilation, i)
        if transposed:
            out.append((size - 1) * s - 2 * p + d * (kernel - 1) + at(output_padding, i) + 1)
        else:
            out.append((size + 2 * p - d * (kernel - 1) - 1) // s + 1)
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    return tuple(x.shape[:-dims - 1]) + (channels,) + tuple(out)
