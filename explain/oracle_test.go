//go:build oracle

package explain

import (
	"testing"

	"kseg/internal/fixture"
)

// TestOracleProducerBatches: Kafka's producer classes cut records into batches today as they did when their answers
// were frozen.
func TestOracleProducerBatches(t *testing.T) {
	got := fixture.CompileJava(t, "oracle/Batches.java").Run(t, nil, "Batches")
	if string(got) != string(fixture.Golden(t, "4.4.0/batch-math/producer-batches.csv")) {
		t.Errorf("the answers have changed:\n%s", got)
	}
}
