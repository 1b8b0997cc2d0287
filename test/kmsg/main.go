// Holds messages against franz-go's kmsg, a codec that shares no schema and no code with ours or Kafka's.
//
// Standard input: one message a line, tab-separated: key, version, "request" or "response", hex of the body,
// its JSON. Each is read by kmsg and written again, which must give the same bytes; and each value of the JSON must be
// among the values that kmsg read. Prints what differs, and last `N agree, N differ, N not known to kmsg, N that it
// gets wrong`.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What kmsg 1.15 itself gets wrong; Kafka's own classes, which made the vectors, are the judge.
var faults = map[string]string{
	"StopReplica v4 request":    "has isKRaftController behind the controller epoch, not before it",
	"UpdateMetadata v8 request": "lacks the field Type",
}

type message interface {
	SetVersion(int16)
	MaxVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

// values counts every value in v by its text: what base64, JSON and decimal digits make of it.
func values(v reflect.Value, found map[string]int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			values(v.Elem(), found)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "UnknownTags" {
				values(v.Field(i), found)
			}
		}
	case reflect.Array: // A UUID.
		id := make([]byte, v.Len())
		for i := range id {
			id[i] = byte(v.Index(i).Uint())
		}
		found[base64.RawURLEncoding.EncodeToString(id)]++
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if !v.IsNil() {
				found[base64.StdEncoding.EncodeToString(v.Bytes())]++
			}
			return
		}
		for i := 0; i < v.Len(); i++ {
			values(v.Index(i), found)
		}
	case reflect.String:
		found[v.String()]++
	case reflect.Bool:
		found[strconv.FormatBool(v.Bool())]++
	case reflect.Float64:
		found[strconv.FormatFloat(v.Float(), 'g', -1, 64)]++
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		found[strconv.FormatInt(v.Int(), 10)]++
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		found[strconv.FormatUint(v.Uint(), 10)]++
	}
}

// missing takes the JSON's values out of found and returns the first that is not there.
func missing(v any, found map[string]int) string {
	text := ""
	switch v := v.(type) {
	case nil:
		return ""
	case map[string]any:
		for name, inner := range v {
			if name == "_unknownTaggedFields" {
				continue
			}
			if lost := missing(inner, found); lost != "" {
				return name + "." + lost
			}
		}
		return ""
	case []any:
		for _, inner := range v {
			if lost := missing(inner, found); lost != "" {
				return lost
			}
		}
		return ""
	case json.Number:
		text = v.String()
		if strings.ContainsAny(text, ".eE") {
			f, _ := v.Float64()
			text = strconv.FormatFloat(f, 'g', -1, 64)
		}
	case bool:
		text = strconv.FormatBool(v)
	case string:
		text = v
	}
	if found[text] == 0 {
		return "value " + strconv.Quote(text)
	}
	found[text]--
	return ""
}

func compare(m message, body []byte, text string) string {
	if err := m.ReadFrom(body); err != nil {
		return "kmsg cannot read it: " + err.Error()
	}
	if again := m.AppendTo(nil); !bytes.Equal(again, body) {
		return "kmsg writes " + hex.EncodeToString(again)
	}
	found := map[string]int{}
	values(reflect.ValueOf(m), found)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var wanted any
	if err := decoder.Decode(&wanted); err != nil {
		return err.Error()
	}
	if lost := missing(wanted, found); lost != "" {
		return "kmsg did not read " + lost
	}
	return ""
}

func main() {
	agree, differ, unknown, theirs := 0, 0, 0, 0
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		part := strings.Split(lines.Text(), "\t")
		key, _ := strconv.Atoi(part[0])
		version, _ := strconv.Atoi(part[1])
		body, err := hex.DecodeString(part[3])
		if err != nil {
			panic(err)
		}
		var m message
		if request := kmsg.RequestForKey(int16(key)); request != nil {
			if m = request; part[2] == "response" {
				m = kmsg.ResponseForKey(int16(key))
			}
		}
		if m == nil || int16(version) > m.MaxVersion() {
			unknown++
			continue
		}
		m.SetVersion(int16(version))
		if wrong := compare(m, body, part[4]); wrong != "" {
			name := fmt.Sprintf("%s v%d %s", kmsg.NameForKey(int16(key)), version, part[2])
			if faults[name] != "" {
				theirs++
				continue
			}
			differ++
			fmt.Printf("%s: %s\n", name, wrong)
			continue
		}
		agree++
	}
	for name, fault := range faults {
		fmt.Printf("left out: kmsg's %s %s\n", name, fault)
	}
	fmt.Printf("%d agree, %d differ, %d not known to kmsg, %d that it gets wrong\n", agree, differ, unknown, theirs)
}
