package doctor

import (
	"context"
	"errors"
	"fmt"

	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/runner/api"
)

// calibrate makes the daemon measure the machine's own environment, and prints it beside
// the previous one.
func calibrate(ctx context.Context, a *cli.App, client *api.Client, image, prove string, asJSON bool) error {
	switch {
	case image == "":
		return cli.Usagef("write for example carma doctor --calibrate pytorch/pytorch:latest", "--calibrate names no image")
	case prove != "":
		return cli.Usagef("ask for one after the other", "--calibrate and --prove both start containers on the GPUs")
	}
	c, err := client.Calibrate(ctx, image)
	var none *api.NoDaemonError
	if errors.As(err, &none) {
		return fmt.Errorf("%w: the daemon measures on its GPUs; start it, on a machine with a GPU, with: carma daemon", err)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.JSON(c)
	}
	right := func(title string) cli.Column { return cli.Column{Title: title, Right: true} }
	t := &cli.Table{Columns: []cli.Column{{Title: "A PROCESS TAKES", Least: 16}, right("NOW"), right("BEFORE")}}
	for _, row := range []struct {
		what        string
		now, before int64
	}{
		{"context", c.Now.Context, c.Before.Context}, {"cuDNN", c.Now.CuDNN, c.Before.CuDNN},
		{"cuBLAS workspace", c.Now.CuBLAS, c.Before.CuBLAS}, {"NCCL, on two GPUs", c.Now.NCCL, c.Before.NCCL},
	} {
		t.Add(row.what, amount(row.now), amount(row.before))
	}
	if err := a.Print(t); err != nil {
		return err
	}
	on := fmt.Sprintf("GPU %d (%s)", c.GPU, c.Model)
	if c.Simulated {
		on += "; the GPU and the figures are simulated"
	}
	a.Println(fmt.Sprintf("measured in %.0f s on %s; memory is estimated for %s from now on, before for %s", c.Seconds, on, c.Now.Name, c.Before.Name))
	return nil
}

// amount formats a figure. 0 means not measured, or nothing.
func amount(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d MiB", units.Bytes(bytes)/units.MiB)
}
