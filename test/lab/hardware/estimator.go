package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// trained is a row of estimates.csv. Memory is in bytes, or 0 if not measured.
type trained struct {
	training
	Status              string
	Reserved, Allocated int64
	Process             int64             // the most that NVML listed for its process
	Settings            map[string]string // columns of carma_train.measure
	StepSeconds         float64
	Estimate, Upper     int64 // for the whole process, context included
	EstimatedContext    int64
}

// mostAtATime is the largest number of trainings that run at once.
const mostAtATime = 8

// estimates trains each network at each batch size for some steps, and puts the
// estimate beside the peak.
func (s *session) estimates(ctx context.Context) error {
	if s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	networks := s.plan.networks
	if s.networks == others {
		networks = s.plan.others
	}
	var jobs []trained
	for i := range 3 { // all networks at one batch size first, because the time may run out
		for _, n := range networks {
			if all := n.all(); i < len(all) {
				jobs = append(jobs, trained{training: all[i]})
			}
		}
	}
	for i := range jobs { // before training, so that each result is written with its estimate
		if err := s.estimate(context.WithoutCancel(ctx), &jobs[i]); err != nil {
			return err
		}
		jobs[i].Status = "no time left"
	}
	s.report.Trained = jobs
	memory := s.watchMemory(ctx)
	s.inPool(ctx, jobs, memory)
	for i := range jobs { // a neighbour may have caused its out-of-memory, so train it again alone
		if jobs[i].Status == "oom" && ctx.Err() == nil {
			jobs[i] = s.trainOne(ctx, jobs[i], memory)
		}
	}
	if err := s.report.writeEstimates(s.out); err != nil {
		return err
	}
	if s.report.Errors().Rows == 0 {
		return nil
	}
	return s.score(context.WithoutCancel(ctx))
}

// inPool trains all networks, as many at a time as fit by their estimates. While
// there is room, neighbours do not change the peak of PyTorch's allocator. The
// table is written after each training, so that results stay.
func (s *session) inPool(ctx context.Context, jobs []trained, memory *memoryOfGroups) {
	var done sync.WaitGroup
	var mu sync.Mutex // guards jobs
	room := s.room()
	for i, job := range jobs {
		need := min(max(job.Upper, 1), room.size)
		room.take(need)
		done.Go(func() {
			defer room.give(need)
			job := s.trainOne(ctx, job, memory)
			mu.Lock()
			defer mu.Unlock()
			jobs[i] = job
			if err := s.report.writeEstimates(s.out); err != nil {
				s.say("%v", err)
			}
		})
	}
	done.Wait()
}

// room returns the memory that trainings may take at once. Without a card they run one at a
// time.
func (s *session) room() *room {
	if s.card == nil {
		return newRoom(1, 1)
	}
	return newRoom(int64(s.card.device.Capacity)*9/10, mostAtATime)
}

// trainOne runs carma_train.measure and reads its row.
func (s *session) trainOne(ctx context.Context, job trained, memory *memoryOfGroups) trained {
	if ctx.Err() != nil {
		job.Status = "no time left"
		return job
	}
	file := filepath.Join(s.work, job.id()+".csv")
	args := []string{"-m", "carma_train.measure", "--models", job.model, "--batches", strconv.Itoa(job.batch), "--steps", strconv.Itoa(s.plan.steps),
		"--device", s.plan.device, "--out", file}
	cmd := s.inPython(ctx, slices.Concat(args, job.flags(), []string{"--", "--dataset", job.dataset})...)
	out, err := cmd.CombinedOutput()
	row, readErr := measured(file)
	switch {
	case ctx.Err() != nil:
		job.Status = "no time left"
	case readErr != nil:
		job.Status = strings.TrimSpace(fmt.Sprintf("%v %s", err, lastLine(string(out))))
	default:
		job.Status = row["status"]
		job.Reserved, job.Allocated = integer(row["max_reserved_bytes"]), integer(row["max_allocated_bytes"])
		job.StepSeconds, _ = strconv.ParseFloat(row["step_seconds"], 64)
		job.Settings = row
	}
	if cmd.Process != nil {
		job.Process = memory.most(cmd.Process.Pid)
	}
	return job
}

// measured returns the only row of a file of carma_train.measure.
func measured(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) != 2 {
		return nil, fmt.Errorf("%s: %d lines", path, len(rows))
	}
	row := map[string]string{}
	for i, name := range rows[0] {
		row[name] = rows[1][i]
	}
	return row, nil
}

// integer returns the number in a column, or 0 if it is NA.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// estimate runs carma estimate for a job.
func (s *session) estimate(ctx context.Context, job *trained) error {
	args := []string{"estimate", job.name(), "--batch", strconv.Itoa(job.batch), "--estimator", "carma", "--json"}
	out, err := s.carmaOutput(ctx, append(args, job.flags()...)...)
	if err != nil {
		return err
	}
	var told struct {
		Estimates []struct {
			Point int64 `json:"point_bytes"`
			Upper int64 `json:"upper_bytes"`
			Parts []struct {
				Name  string
				Bytes int64
			}
		}
	}
	if err := json.Unmarshal(out, &told); err != nil || len(told.Estimates) != 1 {
		return fmt.Errorf("carma estimate %s: %d estimates, %w", job.name(), len(told.Estimates), err)
	}
	e := told.Estimates[0]
	job.Estimate, job.Upper = e.Point, e.Upper
	for _, part := range e.Parts {
		if part.Name == "context" {
			job.EstimatedContext = part.Bytes
		}
	}
	return nil
}

// score keeps the output of carma estimate --evaluate for the file.
func (s *session) score(ctx context.Context) error {
	out, err := s.carmaOutput(ctx, "estimate", "--evaluate", filepath.Join(s.out, "estimates.csv"))
	s.report.Evaluation = string(out)
	return err
}

// carmaOutput runs carma and returns its output. The error has the end of its
// error output.
func (s *session) carmaOutput(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(s.bin, "carma"), args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("carma %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
	}
	return out, err
}
