package submit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Preview prints the result of a submission without submitting it. Without a daemon it
// prints only the locally known facts, with a note.
func Preview(ctx context.Context, a *cli.App, client *api.Client, s api.Submission, asJSON bool) error {
	p, err := client.Preview(ctx, s)
	var none *api.NoDaemonError
	known := true
	if errors.As(err, &none) && !none.Reached() {
		known, p = false, unasked(s)
		a.Say("no daemon at %s: without one there is no estimate and no placement, and nothing is known of the image", none.Socket)
	} else if err != nil {
		return err
	}
	a.Warn(p.Warnings)
	if asJSON {
		return a.JSON(p)
	}
	if err := a.Print(previewTable(&p, known)); err != nil {
		return err
	}
	if len(p.Tasks) == 1 && p.Tasks[0].Estimate.Detail != "" && p.Tasks[0].GPUCount > 0 {
		a.Say("memory: %s", cli.Printable(p.Tasks[0].Estimate.Detail))
	}
	what := "1 task"
	if n := len(p.Tasks); n > 1 {
		what = fmt.Sprintf("%d tasks", n)
	}
	if p.Group != "" {
		what += " in group " + p.Group
	}
	a.Say("%s would be submitted; nothing was", what)
	return nil
}

// unasked returns a submission's preview as far as it is known without a daemon.
func unasked(s api.Submission) api.Preview {
	p := api.Preview{Group: s.Group}
	size, count := map[string]int{}, map[string]int{}
	for _, t := range s.Tasks {
		size[t.Part]++
	}
	for _, t := range s.Tasks {
		count[t.Part]++
		name := t.Name
		if name == "" {
			name = t.Part
			if n := size[t.Part]; t.Array != nil && t.Array.Count == n {
				name += "-" + strconv.Itoa(t.Array.Index)
			} else if n > 1 {
				name += "-" + strconv.Itoa(count[t.Part])
			}
			name = strings.TrimPrefix(name, "-")
		}
		var waits []string
		for _, d := range t.After {
			waits = append(waits, d.Task+d.Part)
		}
		v := api.PreviewTask{Name: name, Image: t.Source(), Command: t.Command, GPUCount: max(1, t.GPUs), Need: t.Mem}
		if t.NoGPU {
			v.GPUCount = 0
		}
		if len(waits) > 0 {
			v.Waits = "after " + strings.Join(waits, ", ")
		}
		p.Tasks = append(p.Tasks, v)
	}
	return p
}

// previewTable formats a preview. known is set if a daemon answered.
func previewTable(p *api.Preview, known bool) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "NAME", Least: 8, Share: 2}, {Title: "IMAGE", Least: 8, Share: 2}, {Title: "COMMAND", Least: 10, Share: 3},
		{Title: "GPUS", Right: true}, {Title: "MEM", Right: true}, {Title: "FROM", Least: 4, Share: 1}, {Title: "NOW", Least: 16, Share: 4},
	}}
	for i := range p.Tasks {
		task := &p.Tasks[i]
		mem, now := cli.GiB(task.Need), task.Waits
		switch {
		case task.GPUCount == 0:
			mem = "-"
		case !known && task.Need == 0:
			mem = "?"
		case task.Need == 0:
			mem = "whole"
		}
		if task.Starts && len(task.GPUs) == 0 {
			now = "starts without a GPU"
		}
		if len(task.GPUs) > 0 {
			now = "starts on " + cli.OnGPUs(task.GPUs)
		}
		t.Add(task.Name, task.Image, strings.Join(task.Command, " "), strconv.Itoa(task.GPUCount), mem, task.Estimate.Method, now)
	}
	return t
}
