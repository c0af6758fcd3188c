//go:build oracle

package explain

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kseg/internal/fixture"
)

// TestOracleProducerBatches: Kafka's producer classes cut records into batches today as they did when their answers were frozen.
func TestOracleProducerBatches(t *testing.T) {
	lib := os.Getenv("KSEG_ORACLE_LIB")
	if lib == "" {
		t.Skip("KSEG_ORACLE_LIB does not name the folder with Kafka's jars")
	}
	dir := t.TempDir()
	classpath := dir + string(os.PathListSeparator) + filepath.Join(lib, "*")
	if text, err := exec.Command("javac", "-nowarn", "-cp", classpath, "-d", dir, filepath.Join("oracle", "Batches.java")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got, err := exec.Command("java", "-cp", classpath, "Batches").Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(fixture.Golden(t, "4.4.0/batch-math/producer-batches.csv")) {
		t.Errorf("the answers have changed:\n%s", got)
	}
}
