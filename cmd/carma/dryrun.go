package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"carma/runner/api"
)

// preview prints what a submission would come to. Without a daemon it prints
// what is known here, and says so.
func (a *app) preview(ctx context.Context, client *api.Client, s api.Submission, asJSON bool) error {
	p, err := client.Preview(ctx, s)
	var none *api.NoDaemonError
	known := true
	if errors.As(err, &none) && !none.Reached() {
		known, p = false, unasked(s)
		a.say("no daemon at %s: without one there is no estimate and no placement, and nothing is known of the image", none.Socket)
	} else if err != nil {
		return err
	}
	for _, w := range p.Warnings {
		a.say("%s", printable(w))
	}
	if asJSON {
		return a.json(p)
	}
	if err := previewTable(&p, known).write(a.out, widthOf(a.out)); err != nil {
		return err
	}
	if len(p.Tasks) == 1 && p.Tasks[0].Estimate.Detail != "" {
		a.say("memory: %s", printable(p.Tasks[0].Estimate.Detail))
	}
	what := "1 task"
	if n := len(p.Tasks); n > 1 {
		what = fmt.Sprintf("%d tasks", n)
	}
	if p.Group != "" {
		what += " in group " + p.Group
	}
	a.say("%s would be submitted; nothing was", what)
	return nil
}

// unasked is a submission as far as it is known without a daemon.
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
		v := api.PreviewTask{Name: name, Image: t.Image, Command: t.Command, GPUCount: max(1, t.GPUs), Need: t.Mem}
		if len(waits) > 0 {
			v.Waits = "after " + strings.Join(waits, ", ")
		}
		p.Tasks = append(p.Tasks, v)
	}
	return p
}

// previewTable shows a preview; known: a daemon was asked.
func previewTable(p *api.Preview, known bool) *table {
	t := &table{columns: []column{
		{title: "NAME", least: 8, share: 2}, {title: "IMAGE", least: 8, share: 2}, {title: "COMMAND", least: 10, share: 3},
		{title: "GPUS", right: true}, {title: "MEM", right: true}, {title: "FROM", least: 4, share: 1}, {title: "NOW", least: 16, share: 4},
	}}
	for i := range p.Tasks {
		task := &p.Tasks[i]
		mem, now := gib(task.Need), task.Waits
		switch {
		case !known && task.Need == 0:
			mem = "?"
		case task.Need == 0:
			mem = "whole"
		}
		if len(task.GPUs) > 0 {
			now = "starts on " + onGPUs(task.GPUs)
		}
		t.add(task.Name, task.Image, strings.Join(task.Command, " "), strconv.Itoa(task.GPUCount), mem, task.Estimate.Method, now)
	}
	return t
}
