package arguments

import (
	"fmt"
	"strconv"
	"strings"

	"carma/configs/models"
)

// Found contains the facts in a command line about its training.
type Found struct {
	// Model is the name or the path of the model, or empty if none is named.
	Model string
	// Trains is set if the command line has an argument that only trainings have. Programs
	// that serve or evaluate a model also have a model's name.
	Trains bool
	// Batch is the batch size of each GPU, or 0 if not given.
	Batch int
	// Settings are the training's settings, by key; see [models.FromTexts].
	Settings map[string]string
	// Said lists the facts that were read, for people, in one line: batch size 4 per GPU,
	// amp.
	Said string
	// Notes lists arguments that could not be parsed, one per line.
	Notes []string
}

// File reads a file that a command line names. The path is as written there.
type File func(path string) ([]byte, error)

// reader collects the facts.
type reader struct {
	file  File
	model string
	batch int
	train bool
	o     models.Overrides
	notes []string

	half    models.Precision // of autocast
	weights models.Precision // of the weights
	adapter string           // "yes" or "no" for adapters, or empty if not given
	bits    int
}

// Read reads a command line: the words of a program, with its launcher. file reads the
// files that it names. If file is nil, no file is read.
func Read(command []string, file File) *Found {
	if file == nil {
		file = func(string) ([]byte, error) { return nil, fmt.Errorf("no files are read") }
	}
	r := &reader{file: file}
	launcher, program := split(flat(command))
	r.launcher(launcher)
	r.program(program)
	r.settle()
	return &Found{Model: r.model, Trains: r.train, Batch: r.batch, Settings: models.Texts(&r.o), Said: Said(r.batch, &r.o), Notes: r.notes}
}

// Said formats a batch size per GPU and settings for people.
func Said(batch int, o *models.Overrides) string {
	var said []string
	if batch > 0 {
		said = append(said, "batch size "+strconv.Itoa(batch)+" per GPU")
	}
	if told := models.Told(o); told != "" {
		said = append(said, told)
	}
	return oneLine(strings.Join(said, ", "))
}

// set sets a setting of the table. A value that the table refuses becomes a note.
func (r *reader) set(name, text, from string) {
	s, ok := models.SettingNamed(name)
	if !ok || text == "" {
		return
	}
	if err := s.Set(&r.o, text); err != nil {
		r.note("%s: %v; not read", from, err)
	}
}

// mostNotes is the largest number of notes on a command line.
const mostNotes = 5

func (r *reader) note(format string, args ...any) {
	if len(r.notes) < mostNotes {
		r.notes = append(r.notes, oneLine(fmt.Sprintf(format, args...)))
	}
}

// oneLine makes untrusted text fit into a line of output.
func oneLine(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "..."
	}
	return text
}

// settle combines the settings of several arguments.
func (r *reader) settle() {
	precision := r.weights
	if r.half != "" && precision != models.BF16 && precision != models.FP16 {
		precision = models.AMP
	}
	zero := strings.HasPrefix(string(r.o.Parallel), "zero")
	if zero && r.half != "" { // DeepSpeed itself converts weights to 16 bits, and keeps 32-bit copies
		precision = r.half
	}
	if r.adapter == "yes" && r.o.LoRA == 0 {
		r.o.LoRA = 16 // default of TRL's ModelConfig
	}
	if r.adapter == "no" || r.o.LoRA == 0 {
		r.o.LoRA, r.o.Targets, r.bits = 0, nil, 0 // only frozen matrices are quantized
	}
	r.o.Bits = r.bits
	if r.bits > 0 && r.weights == "" {
		precision = models.AMP // PEFT keeps unquantized parameters in 32 bits
	}
	r.o.Precision = precision
}
