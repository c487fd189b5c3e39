package zoo

import (
	"fmt"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/timm"
	"carma/internal/suggest"
)

// traced is the prefix of models with tables traced from the timm library.
const traced = "timm/"

// buildTraced returns the network of a traced table. Its image size and classes
// are fixed.
func buildTraced(name string, o models.Overrides) (*models.Config, error) {
	if !timm.Known(name) {
		return nil, fmt.Errorf("unknown model %q; the nearest names: %s", traced+name, strings.Join(suggest.Names(name, timm.Names(), 3), ", "))
	}
	batch := o.Batch
	if batch == 0 {
		batch = 32
	}
	c, err := timm.Build(name, batch)
	if err != nil {
		return nil, err
	}
	if o.Image != 0 || o.Sequence != 0 || o.Classes != 0 || o.Vocabulary != 0 || o.LoRA != 0 || o.Target != 0 || o.Head != "" {
		return nil, fmt.Errorf("%s%s: a traced table has one size of images and one number of classes", traced, name)
	}
	return c.With(o)
}
