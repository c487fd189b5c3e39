package step_test

import (
	"fmt"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
)

// TestGNN compares the simulated step with what PyTorch Geometric allocates.
func TestGNN(t *testing.T) {
	compare(t, "testdata/gnn.csv", 0.05, 0.08, func(row map[string]string) (*models.Config, error) {
		var sizes []string
		for _, name := range []string{"nodes", "edges", "features", "hidden", "layers", "classes", "heads"} {
			if row[name] != "" {
				sizes = append(sizes, fmt.Sprintf("%s=%s", name, row[name]))
			}
		}
		return zoo.Build(row["model"]+":"+strings.Join(sizes, ","), models.Overrides{})
	})
}
