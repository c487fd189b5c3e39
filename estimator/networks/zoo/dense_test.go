package zoo

import (
	"testing"

	"carma/configs/models"
)

// TestDenseParameters: the numbers of all and of trained parameters equal torchvision
// 0.29.2's, which estimator/training/dense_steps.py prints.
func TestDenseParameters(t *testing.T) {
	for _, c := range []struct {
		name         string
		all, trained int64
	}{
		{"deeplabv3_resnet50", 42004074, 42004074},
		{"deeplabv3_resnet101", 60996202, 60996202},
		{"deeplabv3_mobilenet_v3_large", 11029328, 11029328},
		{"fcn_resnet50", 35322218, 35322218},
		{"fcn_resnet101", 54314346, 54314346},
		{"lraspp_mobilenet_v3_large", 3221538, 3221538},
		{"fasterrcnn_resnet50_fpn", 41755286, 41532886},
		{"fasterrcnn_resnet50_fpn_v2", 43712278, 43486934},
		{"maskrcnn_resnet50_fpn_fixed", 44401393, 44178993},
		{"maskrcnn_resnet50_fpn_v2", 46359409, 46134065},
		{"retinanet_resnet50_fpn", 34014999, 33792599},
	} {
		cfg := build(t, c.name, models.Overrides{})
		if got, trained := params(cfg), cfg.TrainableParams(); got != c.all || trained != c.trained {
			t.Errorf("%s has %d parameters, %d trained; want %d and %d", c.name, got, trained, c.all, c.trained)
		}
	}
}
