package zoo

import (
	"testing"

	"carma/configs/models"
)

// TestYOLOParameters: the number of trained parameters equals the number of gradients in
// the package's configurations.
func TestYOLOParameters(t *testing.T) {
	for name, want := range map[string]int64{
		"yolov8n": 3157184, "yolov8s": 11166544, "yolov8m": 25902624, "yolov8l": 43691504, "yolov8x": 68229632,
		"yolo11n": 2624064, "yolo11s": 9458736, "yolo11m": 20114672, "yolo11l": 25372144, "yolo11x": 56966160,
		"yolov8n-seg": 3409952, "yolov8s-seg": 11821040, "yolov8m-seg": 27285952, "yolov8l-seg": 45997712, "yolov8x-seg": 71827872,
		"yolo11n-seg": 2876832, "yolo11s-seg": 10113232, "yolo11m-seg": 22420880, "yolo11l-seg": 27678352, "yolo11x-seg": 62142640,
		"yolov9e": 58206576, "yolov9c-seg": 27897104, "yolov9e-seg": 60512784, // DetectionModel and SegmentationModel of ultralytics 8.4.190
		"yolov10n": 2775504, "yolov10s": 8128256, "yolov10m": 16576752, "yolov10b": 20574368, "yolov10l": 25888672, "yolov10x": 31808944,
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
