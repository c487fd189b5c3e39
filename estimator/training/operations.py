"""Names of aten operators as types of layers (configs/models/types.go)."""

TYPES = {
    "addmm": "linear", "mm": "linear", "linear": "linear", "bmm": "matmul", "baddbmm": "matmul",
    "embedding": "embedding",
    "_scaled_dot_product_efficient_attention": "attention",
    "native_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm",
    "_batch_norm_with_update": "batch_norm", "cudnn_batch_norm": "batch_norm",
    "native_layer_norm": "layer_norm", "native_group_norm": "group_norm",
    "_fused_rms_norm": "rms_norm",
    "relu": "relu", "leaky_relu": "leaky_relu", "_prelu_kernel": "prelu", "elu": "elu",
    "gelu": "gelu", "silu": "silu", "mish": "mish", "softplus": "softplus", "tanh": "tanh",
    "sigmoid": "sigmoid", "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid",
    "hardtanh": "relu6", "_softmax": "softmax", "_log_softmax": "log_softmax",
    "native_dropout": "dropout",
    "max_pool2d_with_indices": "max_pool", "max_pool3d_with_indices": "max_pool",
    "avg_pool1d": "avg_pool", "avg_pool2d": "avg_pool", "avg_pool3d": "avg_pool",
    "_adaptive_avg_pool2d": "avg_pool", "_adaptive_avg_pool3d": "avg_pool",
    "upsample_nearest2d": "upsample", "upsample_bilinear2d": "upsample",
    "upsample_bicubic2d": "upsample", "_upsample_bicubic2d_aa": "upsample",
    "_upsample_bilinear2d_aa": "upsample",
    "constant_pad_nd": "pad", "reflection_pad2d": "pad",
    "mean": "mean", "add": "add", "sub": "add", "rsub": "add", "mul": "mul", "div": "mul",
    "cat": "concat", "stack": "concat",
    "clone": "copy", "_to_copy": "copy", "copy": "copy", "roll": "copy", "copy_": "copy",
    "index_select": "copy", "flip": "copy", "repeat": "copy",
    "zeros": "copy", "ones": "copy", "full": "copy", "arange": "copy", "empty": "copy",
    "zeros_like": "copy", "ones_like": "copy", "empty_like": "copy", "full_like": "copy",
    "new_zeros": "copy", "new_ones": "copy", "new_empty": "copy", "new_full": "copy",
}

# Operators whose backward pass reads their own output.
KEEPS_OUTPUT = {
    "relu", "relu_", "sigmoid", "sigmoid_", "tanh", "tanh_", "_softmax", "_log_softmax",
    "exp", "exp_", "sqrt", "sqrt_", "rsqrt", "rsqrt_", "reciprocal", "reciprocal_",
    "_scaled_dot_product_efficient_attention", "linalg_vector_norm", "amax", "amin", "elu_",
    "leaky_relu_", "logsumexp",
}


def kind(name):
    """The type of an operator's layer."""
    return TYPES.get(name, "other")


def in_place_type(name):
    """The type of an operator that writes into one of its inputs."""
    return TYPES.get(name, TYPES.get(name.rstrip("_"), "other"))
