package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"carma/cmd/carma/cli"
	"carma/configs/models"
	"carma/estimator/arguments"
	reading "carma/estimator/command"
	"carma/estimator/networks"
	"carma/estimator/networks/described"
	"carma/estimator/networks/named"
	"carma/runner/api"
)

// Commands reads the training settings in the tasks' command lines, and puts them into
// requests without explicit settings. Relative paths start at folder. The lines, without
// duplicates, list the settings. It refuses nothing, because the user has not requested
// it.
func Commands(tasks []api.Submit, folder string) (lines []string) {
	built := map[string]error{}
	for i := range tasks {
		for _, line := range (&command{Submit: &tasks[i], folder: folder, built: built}).read() {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// command is a task whose command line is being read.
type command struct {
	*api.Submit
	folder string
	built  map[string]error // networks already built, by their inputs
	taken  int              // GPUs that the daemon will read from its command line
}

func (c *command) read() (lines []string) {
	said := c.gpus()
	return append(said, c.training()...)
}

// gpus reads the number of GPUs from a file that the command names, if the command itself
// does not contain it. The daemon, which knows the image, reads everything else.
func (c *command) gpus() []string {
	if c.NoGPU || c.CommandCheck == "off" {
		return nil
	}
	p := reading.Program{Image: c.Image, Entrypoint: c.Entrypoint, Command: c.Command, Env: c.Env}
	asked := reading.Asked{GPUs: max(1, c.GPUs), Given: c.GPUs != 0}
	alone := reading.Read(&p).Fit(asked)
	p.File = c.open
	fit := reading.Read(&p).Fit(asked)
	switch {
	case c.GPUs == api.AllGPUs:
	case alone.Refusal == "" && fit.Refusal != "":
		return []string{"command: " + fit.Refusal}
	case alone.GPUs == asked.GPUs && fit.GPUs != asked.GPUs:
		c.GPUs = fit.GPUs
		return []string{fmt.Sprintf("--gpus %d, from %s", fit.GPUs, cli.Printable(fit.Taken))}
	}
	c.taken = fit.GPUs
	return nil
}

func (c *command) training() (lines []string) {
	if c.ReadSettings == "none" {
		c.Submit.Read = nil
	}
	if c.ReadSettings == "none" || c.Submit.Read != nil || c.Mem > 0 || c.NoGPU || c.Probe || c.Figure() != "" {
		return nil
	}
	f := reading.Read(&reading.Program{Image: c.Image, Entrypoint: c.Entrypoint, Command: c.Command, Env: c.Env, File: c.open}).Training
	r := &api.Read{Batch: f.Batch, Train: maps.Clone(f.Settings)}
	var said []string
	network := c.Network
	if c.EstModel == "" {
		if !f.Trains || f.Model == "" {
			return nil
		}
		if r.Model, network = c.model(f.Model); r.Model == "" {
			return nil
		}
		said = append(said, "model "+cli.Printable(r.Model))
	}
	for key := range c.Train {
		delete(r.Train, key)
	}
	if note := c.fit(r); note != "" {
		f.Notes = append(f.Notes, note)
	}
	if c.BatchSize > 0 {
		r.Batch = 0
	}
	o, err := models.FromTexts(r.Train)
	if text := arguments.Said(r.Batch, &o); text != "" && err == nil {
		said = append(said, text)
	}
	if len(said) > 0 && err == nil {
		r.Said = strings.Join(said, ", ")
		line, err := "read from the command: "+r.Said, c.try(r, network)
		if err != nil {
			return []string{line + "; not used: " + err.Error()}
		}
		c.Submit.Read, c.Network = r, network
		lines = append(lines, line)
	}
	for _, note := range f.Notes {
		lines = append(lines, "read from the command: "+note)
	}
	return lines
}

// fit removes a spread over GPUs that the task does not have. The note reports this.
func (c *command) fit(r *api.Read) (note string) {
	const key = "sequence_parallel"
	n, err := strconv.Atoi(r.Train[key])
	if gpus := max(c.GPUs, c.taken, 1); err == nil && gpus%n != 0 {
		delete(r.Train, key)
		return fmt.Sprintf("the tokens of a sample are spread over %d GPUs there, and the task has %d (--gpus); not used", n, gpus)
	}
	return ""
}

// model returns the name of a model in a command line, and its description if it is a
// local folder. The name is empty if it is neither a known name nor such a folder.
func (c *command) model(ref string) (name string, network json.RawMessage) {
	if named.Known(ref) {
		return ref, nil
	}
	folder, ok := c.hostPath(ref)
	if !ok || !networks.IsFile(filepath.Join(folder, "config.json")) {
		return "", nil
	}
	d, err := networks.Describe(folder, models.Overrides{})
	if err != nil {
		return "", nil
	}
	return models.Clip(d.Name), d.Network
}

// try builds the network with all settings, because misread settings must not stop a
// task.
func (c *command) try(r *api.Read, network json.RawMessage) error {
	with := *c.Submit
	with.Read = r
	o, err := with.Training()
	if err != nil {
		return err
	}
	name := with.Model()
	if len(network) == 0 && !named.Known(name) {
		return errors.New("the layers of " + models.Clip(name) + " are not known here")
	}
	key := fmt.Sprint(name, len(network), models.Texts(&o))
	if err, done := c.built[key]; done {
		return err
	}
	var built *models.Config
	if len(network) > 0 {
		built, _, err = described.Read(name, network, o)
	} else {
		built, err = named.Build(name, o)
	}
	if err == nil && o.SequenceParallel > 1 && !slices.ContainsFunc(built.Layers, func(l models.Layer) bool { return l.Type == models.Attention }) {
		err = errors.New("a network without attention has no tokens to spread over GPUs")
	}
	c.built[key] = err
	return err
}

// open reads a file that the command line names, if it is readable here.
func (c *command) open(name string) ([]byte, error) {
	p, ok := c.hostPath(name)
	if !ok {
		return nil, os.ErrNotExist
	}
	if !networks.IsFile(p) { // reading a pipe might not end
		return nil, os.ErrNotExist
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, arguments.MaxFile+1))
}

// hostPath returns the path on this machine for a path of the task. For a container it
// uses the mounts. A relative path starts at the current folder if the image's working
// folder is unknown.
func (c *command) hostPath(name string) (string, bool) {
	if c.Bare() {
		if filepath.IsAbs(name) {
			return name, true
		}
		return filepath.Join(c.WorkDir, name), c.WorkDir != ""
	}
	if !path.IsAbs(name) {
		if c.WorkDir == "" {
			return filepath.Join(c.folder, name), true
		}
		name = path.Join(c.WorkDir, name)
	}
	best := -1
	for i, m := range c.Mounts {
		if (name == m.Target || strings.HasPrefix(name, strings.TrimSuffix(m.Target, "/")+"/")) && (best < 0 || len(m.Target) > len(c.Mounts[best].Target)) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	m := c.Mounts[best]
	return filepath.Join(m.Source, strings.TrimPrefix(name, m.Target)), true
}
