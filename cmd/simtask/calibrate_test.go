package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"carma/configs/workloads"
	"carma/estimator/environment"
)

// TestCalibrate: the daemon can read a simulated GPU's figures, and the context equals
// the server's.
func TestCalibrate(t *testing.T) {
	b := newBench(t, 1)
	env := func(name string) string {
		return map[string]string{"CARMA_SIM": b.dir, "NVIDIA_VISIBLE_DEVICES": "0"}[name]
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"calibrate"}, env, &out, &errs, time.Second); code != exitOK {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	m, err := environment.ReadMeasured(strings.Split(out.String(), "\n"))
	if err != nil || m.Context != int64(workloads.Context("")) || m.CuBLAS == 0 || m.Torch != "simulated" {
		t.Errorf("%q: %+v, %v", out.String(), m, err)
	}
	if code := run(context.Background(), []string{"calibrate"}, func(string) string { return "" }, &out, &errs, time.Second); code != exitNoGPU || !strings.Contains(errs.String(), "no GPU") {
		t.Errorf("without a GPU: code %d, %s", code, errs.String())
	}
}
