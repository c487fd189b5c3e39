package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"carma/internal/units"

	"carma/runner/gpu/simgpu/client"
)

func (t *trainer) header() {
	fmt.Fprintf(t.out, "%s on %s, batch size %d, %d steps per epoch\n", t.model, t.dataset, t.batch, t.steps)
	for i, g := range t.client.GPUs() {
		fmt.Fprintf(t.out, "cuda:%d %s %s\n", i, g.Model, g.UUID)
	}
	if n := len(t.client.GPUs()); n < len(t.peaks) {
		fmt.Fprintf(t.out, "%d GPU is visible, the job was written for %d\n", n, len(t.peaks))
		t.peaks, t.loads = t.peaks[:n], t.loads[:n]
	}
}

// done returns the number of steps trained.
func (t *trainer) done() int {
	return min(t.steps*t.epochs, int(float64(t.steps*t.epochs)*t.trained/t.seconds))
}

// position returns the epoch, from 1, and the number of its steps done.
func (t *trainer) position() (epoch, step int) {
	done := t.done()
	if done == t.steps*t.epochs {
		return t.epochs, t.steps
	}
	return done/t.steps + 1, done % t.steps
}

// progress prints the progress of the training.
func (t *trainer) progress() {
	t.show()
	t.printed, t.printedStep = time.Now(), t.done()
}

// loss returns a typical loss: it falls fast at first, never quite smoothly. It depends
// only on the step.
func (t *trainer) loss() float64 {
	share := float64(t.done()) / float64(t.steps*t.epochs)
	noise := math.Sin(float64(t.done())*12.9898) * 0.03
	return 0.6 + 5.4*math.Exp(-3.2*share)*(1+noise)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// outOfMemory exits like PyTorch 2. The wording is PyTorch's, because OOM detection
// matches it; the path and lines are made up.
func (t *trainer) outOfMemory(e *client.OOMError) {
	// Part of the memory that the allocator has allocated from the GPU is between tensors.
	tensors := max(0, e.Held-t.context)
	unused := tensors / 64
	var b strings.Builder
	b.WriteString("Traceback (most recent call last):\n")
	b.WriteString("  File \"/workspace/train.py\", line 214, in <module>\n    main()\n")
	b.WriteString("  File \"/workspace/train.py\", line 187, in main\n    loss = criterion(model(inputs), targets)\n")
	fmt.Fprintf(&b, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of which %s is free. ",
		torchSize(e.Asked), e.GPU, torchSize(e.Total), torchSize(e.Free))
	fmt.Fprintf(&b, "Including non-PyTorch memory, this process has %s memory in use. ", torchSize(e.Held))
	fmt.Fprintf(&b, "Of the allocated memory %s is allocated by PyTorch, and %s is reserved by PyTorch but unallocated. ",
		torchSize(tensors-unused), torchSize(unused))
	b.WriteString("If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  " +
		"See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n")
	fmt.Fprint(t.err, b.String())
}

// torchSize formats memory like PyTorch's allocator.
func torchSize(n units.Bytes) string {
	switch {
	case n <= 1024:
		return fmt.Sprintf("%d bytes", n)
	case n <= units.MiB:
		return fmt.Sprintf("%.2f KiB", float64(n)/float64(units.KiB))
	case n <= units.GiB:
		return fmt.Sprintf("%.2f MiB", float64(n)/float64(units.MiB))
	}
	return fmt.Sprintf("%.2f GiB", n.GiB())
}

// valueError exits like a program with a bug.
func (t *trainer) valueError() {
	fmt.Fprintf(t.err, "Traceback (most recent call last):\n"+
		"  File \"/workspace/train.py\", line 214, in <module>\n    main()\n"+
		"  File \"/workspace/train.py\", line 183, in main\n    targets = targets.view(args.batch_size, -1)\n"+
		"ValueError: expected input batch size (%d) to match target batch size (%d)\n", t.batch, max(1, t.batch-1))
}
