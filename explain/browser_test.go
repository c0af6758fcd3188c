package explain

import (
	"context"
	"testing"

	"kseg/internal/fixture"
)

// TestPageInABrowser: pages of a damaged segment, of decoded records and of a snapshot hold up in a real browser.
func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds to start")
	}
	damaged := append([]byte(nil), fixture.Data(t, "4.4.0/transactions/ledger-0/00000000000000000000.log")...)
	damaged[200] ^= 1
	for name, data := range map[string][]byte{
		"x-0/00000000000000000000.log": damaged,
		"__consumer_offsets-0/00000000000000000000.log": fixture.Data(t,
			"4.4.0/internal/__consumer_offsets-0/00000000000000000000.log"),
		"x-0/00000000000000000087.snapshot": fixture.Data(t, "4.4.0/transactions/ledger-0/00000000000000000087.snapshot"),
	} {
		t.Run(name, func(t *testing.T) {
			page, err := Page(context.Background(), fileAlone(t, name, data), Options{All: true, MaxBatchBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			fixture.CheckPage(t, page)
		})
	}
}
