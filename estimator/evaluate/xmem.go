package evaluate

import (
	"fmt"
	"strings"

	"carma/configs/models"
)

// Xmem is the set of the runs that were measured for the xMem estimator.
const Xmem = "xmem"

// xmemEnvironments maps the end of the GPU's name in the file to the environment.
var xmemEnvironments = map[string]string{"RTX 3060": RTX3060Xmem, "RTX 4060": RTX4060Xmem, "A100-SXM4-40GB": A100Xmem}

// Environments of xMem's measurements.
const (
	RTX3060Xmem = "xmem-rtx3060"
	RTX4060Xmem = "xmem-rtx4060"
	A100Xmem    = "xmem-a100"
)

// xmemNames maps the file's names of networks to different names in the catalogue. The
// catalogue's T5 fits, because the library of that time computed T5's attention without a
// fused kernel.
var xmemNames = map[string]string{
	"MobeNetV3Small": "mobilenet_v3_small", "MobeNetV3Large": "mobilenet_v3_large",
	"T5-small": "t5_small", "T5-base": "t5_base",
	"RegNetX400MF": "regnet_x_400mf", "RegNetY400MF": "regnet_y_400mf",
}

// xmemCase reads a run of the xMem data. Its images have 86 x 86 pixels. Its texts have at
// most 128 tokens.
func xmemCase(r row, look Lookup) (Case, bool, error) {
	if r.text("ground_bytes") == "" {
		return Case{}, false, nil
	}
	measured, err1 := r.integer("ground_bytes", 1, 1<<50)
	batch, err2 := r.integer("batch_size", 1, 1<<20)
	for _, err := range []error{err1, err2} {
		if err != nil {
			return Case{}, false, err
		}
	}
	model, optimizer := r.text("model"), r.text("optimizer")
	c := Case{
		Name: fmt.Sprintf("%s x %d, %s, %s", model, batch, optimizer, r.text("gpu")), Group: model + "|" + optimizer, Batch: int(batch), Measured: measured,
		Truncated: r.text("real_oom") == "true", Published: map[string]int64{},
	}
	for end, name := range xmemEnvironments {
		if strings.HasSuffix(r.text("gpu"), end) {
			c.Environment = name
		}
	}
	if c.Environment == "" {
		return c, false, fmt.Errorf("gpu %q is none of the RTX 3060, RTX 4060 and A100-SXM4-40GB", r.text("gpu"))
	}
	for _, of := range []string{"xmem", "dnnmem", "schedtune", "llmem"} {
		if n, err := r.integer(of+"_bytes", 1, 1<<50); err == nil {
			c.Published[of] = n
		}
	}
	name := model
	if n, ok := xmemNames[model]; ok {
		name = n
	}
	with := models.Overrides{Batch: int(batch), Optimizer: models.Optimizer(strings.ToLower(optimizer)), Sequence: 128, Padded: true}
	if with.Optimizer == models.Adafactor {
		with.Implementation = "for-loop" // the default of torch.optim
	}
	cfg, err := look(name, with)
	if err != nil {
		with.Sequence, with.Padded, with.Image = 0, false, 86
		cfg, err = look(name, with)
	}
	c.Config = cfg
	if cfg != nil {
		cfg.Train.Cache = true
		cfg.Train.ZeroGrad = map[string]string{"1": "backward", "2": "end"}[r.text("zero_grad")]
	}
	return c, err == nil, nil
}
