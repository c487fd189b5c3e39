package original

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Rad is the content of a .rad file.
type Rad struct {
	Comment     string // line 1, with its #
	Environment string // line 2, a command that activates the environment
	Command     string
	Model       string // file with the model's summary
	Dataset     string
	Batch       int
	GPUs        int
	// Peak is the measured peak. The other values are estimates, or NoEstimate. All are in
	// MiB per GPU, and 0 if the file lacks these lines.
	Peak, Horus, FakeTensor, GPUMemNet float64
}

// NoEstimate stands for a missing estimate. Its value is the memory of a whole A100.
const NoEstimate = 40000

// Limits on untrusted input.
const (
	maxLine = 64 << 10 // bytes
	maxGPUs = 64
	radLine = 12 // lines of a .rad file
)

// ParseRad reads a .rad file. Errors begin with name and the line.
func ParseRad(name string, r io.Reader) (Rad, error) {
	lines, err := radLines(name, r)
	if err != nil {
		return Rad{}, err
	}
	f := Rad{Comment: lines[0], Environment: lines[1], Command: lines[2], Model: lines[3], Dataset: lines[4]}
	errorf := func(line int, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
	}
	if f.Command == "" {
		return Rad{}, errorf(3, "no command; write for example python train.py --batch_size 64")
	}
	if f.Batch, err = strconv.Atoi(lines[5]); err != nil || f.Batch < 1 {
		return Rad{}, errorf(6, "batch size %.40q is not a whole number from 1 on", lines[5])
	}
	if lines[6] != "exclusive" {
		return Rad{}, errorf(7, "%.40q stands where exclusive belongs; is a line missing or too many?", lines[6])
	}
	if f.GPUs, err = strconv.Atoi(lines[7]); err != nil || f.GPUs < 1 || f.GPUs > maxGPUs {
		return Rad{}, errorf(8, "number of GPUs %.40q is not a whole number from 1 to %d", lines[7], maxGPUs)
	}
	for i, to := range []*float64{&f.Peak, &f.Horus, &f.FakeTensor, &f.GPUMemNet} {
		line := 8 + i
		if line >= len(lines) {
			break
		}
		if *to, err = strconv.ParseFloat(lines[line], 64); err != nil || !(*to >= 0) || math.IsInf(*to, 0) {
			return Rad{}, errorf(line+1, "memory %.40q is not an amount in MiB; write for example 7106, or %d where none is known", lines[line], NoEstimate)
		}
	}
	return f, nil
}

// radLines returns the lines of a .rad file without empty lines at the end. It fails if
// there are fewer than 8 lines.
func radLines(name string, r io.Reader) ([]string, error) {
	var lines []string
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		text := strings.TrimSpace(s.Text())
		if len(lines) >= radLine {
			if text != "" {
				return nil, fmt.Errorf("%s:%d: a .rad file has %d lines", name, len(lines)+1, radLine)
			}
			continue
		}
		lines = append(lines, text)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, len(lines)+1, err)
	}
	for len(lines) > 8 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) < 8 {
		return nil, fmt.Errorf("%s:%d: the file ends here; a .rad file has %d lines, the 8th the number of GPUs", name, max(1, len(lines)), radLine)
	}
	return lines, nil
}

// Write writes the .rad file.
func (f Rad) Write(w io.Writer) error {
	mib := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	lines := []string{
		f.Comment, f.Environment, f.Command, f.Model, f.Dataset, strconv.Itoa(f.Batch), "exclusive", strconv.Itoa(f.GPUs),
		mib(f.Peak), mib(f.Horus), mib(f.FakeTensor), mib(f.GPUMemNet),
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
