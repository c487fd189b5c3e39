package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"carma/configs/models"
	"carma/internal/suggest"
)

// dataset contains the settings that a data set changes. If image or sequence is 0, the
// network's own size applies.
type dataset struct {
	text           bool
	image, classes int64
	sequence       int64
}

// Networks of ImageNet keep their own image size: 224 or 299 pixels and more.
var datasets = map[string]dataset{
	"mnist":        {image: 28, classes: 10},
	"fashionmnist": {image: 28, classes: 10},
	"cifar10":      {image: 32, classes: 10},
	"cifar100":     {image: 32, classes: 100},
	"tinyimagenet": {image: 64, classes: 200},
	"imagenet":     {classes: 1000},
	"voc":          {classes: 21},
	"coco":         {classes: 91},
	"wikitext2":    {text: true},
	"wikitext103":  {text: true},
	"squad":        {text: true, sequence: 384},
	"glue":         {text: true, sequence: 128},
	"criteo":       {},
}

// Limits of the sizes. A larger value is a typing error, and its products would overflow.
const (
	mostPixels  = 1 << 16
	mostTokens  = 1 << 20
	MostClasses = 1 << 26
	mostRank    = 1 << 16
	mostBatch   = 1 << 30
)

func (e Network) sized(set string, o models.Overrides) (Sizes, error) {
	s := e.Size
	if set != "" {
		d, ok := datasets[Fold(set)]
		if !ok {
			names := slices.Sorted(maps.Keys(datasets))
			return s, fmt.Errorf("unknown data set %q; the nearest names: %s", set,
				strings.Join(suggest.Names(set, names, 3), ", "))
		}
		if err := d.apply(set, &s); err != nil {
			return s, err
		}
	}
	changes := []struct {
		name  string
		value int
		most  int64
		field *int64
	}{
		{"image", o.Image, mostPixels, &s.Image},
		{"sequence", o.Sequence, mostTokens, &s.Sequence},
		{"target-seq", o.Target, mostTokens, &s.Target},
		{"classes", o.Classes, MostClasses, &s.Classes},
		{"vocabulary", o.Vocabulary, MostClasses, &s.Vocabulary},
	}
	for _, c := range changes {
		if err := within(c.name, c.value, c.most); err != nil {
			return s, err
		}
		if c.value == 0 {
			continue
		}
		if *c.field == 0 {
			return s, fmt.Errorf("has no setting %s", c.name)
		}
		*c.field = int64(c.value)
	}
	if e.Longest > 0 && s.Sequence > e.Longest {
		return s, fmt.Errorf("a sequence of %d is longer than its %d positions", s.Sequence, e.Longest)
	}
	if e.Longest > 0 && s.Target > e.Longest {
		return s, fmt.Errorf("a target of %d is longer than its %d positions", s.Target, e.Longest)
	}
	return s, nil
}

func within(name string, value int, most int64) error {
	if value < 0 || int64(value) > most {
		return fmt.Errorf("%s is %d, want 1 to %d", name, value, most)
	}
	return nil
}

func (d dataset) apply(name string, s *Sizes) error {
	if d.text && s.Sequence == 0 {
		return fmt.Errorf("%s is text, which it does not take", name)
	}
	if (d.image > 0 || d.classes > 0) && s.Image == 0 {
		return fmt.Errorf("%s is images, which it does not take", name)
	}
	if d.image > 0 {
		s.Image = d.image
	}
	if d.classes > 0 {
		s.Classes = d.classes
	}
	if d.sequence > 0 {
		s.Sequence = d.sequence
	}
	return nil
}

func (e Network) train(o models.Overrides) (models.Train, error) {
	t := o.Train(models.Train{Batch: e.Batch})
	if o.Bits != 0 && t.Precision == "" {
		t.Precision = models.AMP // see quantize
	}
	if t.Batch < 1 || t.Batch > mostBatch {
		return t, fmt.Errorf("batch is %d, want 1 to %d", t.Batch, mostBatch)
	}
	if err := within("LoRA rank", o.LoRA, mostRank); err != nil {
		return t, err
	}
	if err := within("GPUs", o.GPUs, mostRank); err != nil {
		return t, err
	}
	return t, t.Check()
}

// Fold makes names equal that differ only in case and the characters - _ . and space.
func Fold(name string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
}
