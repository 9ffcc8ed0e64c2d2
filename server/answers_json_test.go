package server

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// masked are the fields whose values are a node's own: they are shown as "*" unless
// they are empty.
var masked = map[string]bool{
	"TopicID": true, "ClusterID": true, "LeaderEpoch": true, "HighWatermark": true, "LogEndOffset": true,
	"LastFetchTimestamp": true, "LastCaughtUpTimestamp": true, "Host": true, "Port": true, "ReplicaDirectoryID": true,
	"Dir": true, "TotalBytes": true, "UsableBytes": true, "FinalizedFeaturesEpoch": true,
}

// fromJSON sets a request's fields: ids are hex strings, bytes are strings, enums
// are numbers. Fields that are not named keep their defaults.
func fromJSON(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return err
	}
	return setField(reflect.ValueOf(into).Elem(), tree)
}

func setField(v reflect.Value, tree any) error {
	if tree == nil {
		v.SetZero()
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		setDefaults(v.Elem())
		return setField(v.Elem(), tree)
	}
	switch t := tree.(type) {
	case json.Number:
		return setNumber(v, t)
	case bool:
		v.SetBool(t)
	case string:
		return setText(v, t)
	case []any:
		v.Set(reflect.MakeSlice(v.Type(), len(t), len(t)))
		for i, e := range t {
			setDefaults(v.Index(i))
			if err := setField(v.Index(i), e); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range t {
			f := v.FieldByName(name)
			if !f.IsValid() {
				return fmt.Errorf("%s has no field %s", v.Type(), name)
			}
			if err := setField(f, e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func setDefaults(v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
		d.Default()
	}
}

func setNumber(v reflect.Value, n json.Number) (err error) {
	switch {
	case v.CanInt():
		var i int64
		i, err = n.Int64()
		v.SetInt(i)
	case v.CanUint():
		var i int64
		i, err = n.Int64()
		v.SetUint(uint64(i))
	case v.CanFloat():
		var f float64
		f, err = n.Float64()
		v.SetFloat(f)
	default:
		err = fmt.Errorf("a number for a %s", v.Type())
	}
	return err
}

func setText(v reflect.Value, s string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Slice:
		v.SetBytes([]byte(s))
	case reflect.Array:
		id, err := hex.DecodeString(s)
		if err != nil || len(id) != v.Len() {
			return fmt.Errorf("%q is not an id", s)
		}
		reflect.Copy(v, reflect.ValueOf(id))
	default:
		return fmt.Errorf("a string for a %s", v.Type())
	}
	return nil
}

// toJSON shows a response in one line, without fields that are zero. Lists of rows
// are sorted: Kafka's own order is often that of a hash table.
func toJSON(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return toJSON(v.Elem())
	case reflect.Struct:
		return structJSON(v)
	case reflect.Slice:
		if v.IsNil() {
			return "null"
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return leafJSON(string(v.Bytes()))
		}
		rows := make([]string, v.Len())
		for i := range rows {
			rows[i] = toJSON(v.Index(i))
		}
		if v.Type().Elem().Kind() == reflect.Struct {
			slices.Sort(rows)
		}
		return "[" + strings.Join(rows, ",") + "]"
	case reflect.Array:
		return leafJSON(fmt.Sprintf("%x", v.Interface()))
	}
	if v.CanInt() { // an enum's own text hides its number
		return leafJSON(v.Int())
	}
	return leafJSON(v.Interface())
}

func structJSON(v reflect.Value) string {
	var fields []string
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if name == "UnknownTags" || name == "Version" || name == "ThrottleMillis" {
			continue
		}
		if f.IsZero() && f.Kind() != reflect.Slice && f.Kind() != reflect.Pointer {
			continue
		}
		text := toJSON(f)
		if masked[name] && !(f.Kind() == reflect.Pointer && f.IsNil()) {
			text = `"*"`
		}
		fields = append(fields, leafJSON(name)+":"+text)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func leafJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", err)
	}
	return strings.TrimSpace(b.String())
}
