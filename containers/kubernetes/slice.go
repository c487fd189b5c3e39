package kubernetes

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers/kubernetes/manifest"
)

// SimulatedDriver is the name of the DRA driver of simulated GPUs, and of its device
// class.
const SimulatedDriver = "gpu.carma.dev"

// Slice describes the simulated GPUs of a node. All have this model and this many bytes of
// memory, which several claims may share.
func Slice(node, model string, uuids []string, bytes int64) resourcev1.ResourceSlice {
	yes := true
	s := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + SimulatedDriver, Labels: map[string]string{manifest.ManagedBy: manifest.Owner}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: SimulatedDriver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i, uuid := range uuids {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i), AllowMultipleAllocations: &yes,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{manifest.UUIDAttribute: {StringValue: &uuid}, modelAttribute: {StringValue: &model}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				manifest.Memory: {Value: *resource.NewQuantity(bytes, resource.BinarySI)},
			},
		})
	}
	return s
}
