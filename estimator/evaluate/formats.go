package evaluate

import (
	"errors"
	"fmt"
	"strings"

	"carma/configs/models"
)

// Environments of the public data's measurements.
const (
	A100Generated = "a100-2024"
	A100Autumn24  = "a100-2024-10"
	A100Autumn25  = "a100-2025-09"
	A100Timm      = "a100-timm"
	H100Autumn26  = "h100-2026-11"
)

// cnnCase reads a generated convolutional network. Networks with residual and
// dense connections are left out, because their layer lists lack the connections.
// The data's authors do the same.
func cnnCase(r row, _ Lookup) (Case, bool, error) {
	c, ok, err := network(r)
	if err != nil || !ok {
		return c, ok, err
	}
	if a := r.text("architecture"); a == "residual" || a == "dense" {
		return c, false, nil
	}
	channels, err1 := r.integer("input_channels", 1, 1<<16)
	side, err2 := r.integer("input_size", 1, 1<<16)
	if err := errors.Join(err1, err2); err != nil {
		return c, false, err
	}
	c.Config.Family = models.Conv
	c.Config.Inputs = []models.Input{{Shape: []int64{channels, side, side}}}
	c.Truncated = r.text("status") != "SUCCESSFUL"
	c.Config.Layers, err = chain(r.text("layers"), channels, side)
	return c, true, err
}

// mlpCase reads a generated fully connected network.
func mlpCase(r row, _ Lookup) (Case, bool, error) {
	c, ok, err := network(r)
	if err != nil || !ok {
		return c, ok, err
	}
	in, err := r.integer("input_size", 1, 1<<30)
	if err != nil {
		return c, false, err
	}
	c.Config.Family = models.MLP
	c.Config.Inputs = []models.Input{{Shape: []int64{in}}}
	c.Config.Layers, err = chain(r.text("layers"), in, 1)
	return c, true, err
}

// network reads the columns common to all generated networks.
func network(r row) (Case, bool, error) {
	measured, err := r.mib("max_gpu_mem_mib")
	if err != nil {
		return Case{}, false, err
	}
	batch, err := r.integer("batch_size", 1, 1<<30)
	if err != nil {
		return Case{}, false, err
	}
	if measured == 0 || r.text("layers") == "" {
		return Case{}, false, nil
	}
	name := fmt.Sprintf("%s %s, line %d", r.text("architecture"), r.text("activation_module"), r.line)
	return Case{
		Name: name, Group: fmt.Sprintf("%s|%s", r.text("input_size"), r.text("layers")),
		Batch: int(batch), Measured: measured, Environment: A100Generated,
		Config: &models.Config{
			Schema: models.Schema, Name: name, Origin: "table",
			Train: models.Train{Batch: int(batch), Optimizer: models.Adam},
		},
	}, true, nil
}

// timmCase reads a row of the timm collection.
func timmCase(r row, look Lookup) (Case, bool, error) {
	measured, err1 := r.mib("actual_mib")
	tracked, err2 := r.mib("faketensor_peak_mib")
	batch, err3 := r.integer("batch_size", 1, 1<<20)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Case{}, false, err
	}
	if measured == 0 {
		return Case{}, false, nil
	}
	c := Case{
		Name: fmt.Sprintf("%s x %d", r.text("model"), batch), Group: r.text("model"), Batch: int(batch),
		FakeTensor: tracked, Measured: measured, Environment: A100Timm, Truncated: r.text("oom_suspect") == "1",
		Published: map[string]int64{"faketensor": tracked},
	}
	c.Config, _ = look("timm/"+r.text("model"), models.Overrides{Batch: int(batch)}) // an unknown model is estimated from the tracker's peak
	return c, true, nil
}

// usualSettings contains the settings assumed for tables without such columns.
var usualSettings = map[string]bool{string(models.Adam): true, string(models.FP32): true}

// realCase reads a measured real model.
func realCase(r row, look Lookup) (Case, bool, error) {
	measured, err1 := r.mib("actual_mib")
	batch, err2 := r.integer("batch_size", 1, 1<<30)
	gpus, err3 := r.integer("gpus", 1, 1024)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Case{}, false, err
	}
	if measured == 0 {
		return Case{}, false, nil
	}
	name := strings.TrimSuffix(r.text("model"), "_"+r.text("dataset")) + "/" + r.text("dataset")
	j, ok := jobs[name]
	if !ok {
		j = job{name: name}
	}
	c := Case{
		Name: fmt.Sprintf("%s x %d on %d", name, batch, gpus), Group: j.name, Batch: int(batch), Measured: measured,
		Environment: map[string]string{"2024-10": A100Autumn24, "2025-09": A100Autumn25, "2026-11": H100Autumn26}[r.text("measured")],
		Published:   map[string]int64{},
	}
	for _, of := range []string{"horus", "faketensor", "gpumemnet"} {
		n, err := r.mib(of + "_mib")
		if err != nil {
			return Case{}, false, err
		}
		if n > 0 {
			c.Published[of] = n
		}
	}
	c.FakeTensor = c.Published["faketensor"]
	with := j.at(int(batch), int(gpus))
	for _, name := range []string{"optimizer", "precision"} { // only later tables have these columns
		text := r.text(name)
		if text == "" {
			continue
		}
		setting, _ := models.SettingNamed(name)
		if err := setting.Set(&with, text); err != nil {
			return Case{}, false, fmt.Errorf("%s: %w", name, err)
		}
		if !usualSettings[text] {
			c.Name += ", " + text
			c.Group += "|" + text
		}
	}
	if c.Config, err3 = look(j.name, with); err3 != nil {
		model, _, _ := strings.Cut(j.name, "/") // for an unknown data set, use the model's default sizes
		c.Config, err3 = look(model, with)
	}
	return c, err3 == nil, nil // a file may have unknown models
}
