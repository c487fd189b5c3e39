// Package detection contains networks that find objects and their masks: torchvision's
// Faster R-CNN, Mask R-CNN and RetinaNet, ultralytics' YOLO, and the transformers
// library's DETR, MaskFormer, Mask2Former and SAM.
package detection
