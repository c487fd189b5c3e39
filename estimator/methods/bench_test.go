package methods

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/networks/zoo"
)

// BenchmarkCarma makes one estimate from a table of layers.
func BenchmarkCarma(b *testing.B) {
	for _, env := range []string{"a100-2025-09"} {
		for _, name := range []string{"resnet50", "vgg16", "bert_base", "mlp_1024x3"} {
			b.Run(env+"/"+name, func(b *testing.B) {
				e, err := environment.Named(env)
				if err != nil {
					b.Fatal(err)
				}
				c, err := zoo.Build(name, models.Overrides{Batch: 32})
				if err != nil {
					b.Fatal(err)
				}
				m := &Carma{}
				s := Subject{Config: c, Environment: &e.Environment}
				for b.Loop() {
					if _, err := m.Estimate(s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
