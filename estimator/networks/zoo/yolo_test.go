package zoo

import (
	"testing"

	"carma/configs/models"
)

// TestYOLOParameters: the trained parameters are those that the package's
// configurations name as gradients.
func TestYOLOParameters(t *testing.T) {
	for name, want := range map[string]int64{
		"yolov8n": 3157184, "yolov8s": 11166544, "yolov8m": 25902624, "yolov8l": 43691504, "yolov8x": 68229632,
		"yolo11n": 2624064, "yolo11s": 9458736, "yolo11m": 20114672, "yolo11l": 25372144, "yolo11x": 56966160,
		"yolov9t": 2128704, "yolov9s": 7318352, "yolov9m": 20216144, "yolov9c": 25590896, // DetectionModel of ultralytics 8.4.190
	} {
		cfg := build(t, name, models.Overrides{})
		if got := cfg.TrainableParams(); got != want {
			t.Errorf("%s has %d parameters, want %d", name, got, want)
		}
		if !cfg.Train.EMA {
			t.Errorf("%s has no copy of its weights", name)
		}
	}
}
