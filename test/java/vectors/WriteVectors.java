import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Writes every message of every version, as Apache Kafka's own generated classes encode it.
 *
 *   java -cp 'target/json/*' WriteVectors.java JARS VECTORS.tsv.gz VERDICTS.tsv.gz     (the script `write` does it)
 *
 * JARS holds the jars of two releases; a version that the newer one has is written by it. A line is
 * message, version, variant, release, bytes in hex, JSON of Kafka's converter. Variants:
 *
 *   defaults  a new instance
 *   full      every field set, two elements in each array, all tagged fields
 *   nulls     what may be null is null, one element in each array
 *   tagged    all tagged fields, and in each struct one tag that no version knows
 *
 * The second file tells what Kafka's readers make of damaged bytes, for what the newer release has. A line is
 * message, version, bytes in hex or the name of a variant, verdicts, and for bytes the row of the fault catalogue that
 * they are for. For a variant: one digit for each bit, from the
 * first byte's lowest, of what comes of flipping it. Digits: 0 refused, 1 read, 2 read with bytes left over.
 *
 * The field lists come from the schemas inside the jars. Kafka's JSON leaves the bytes of a records
 * field out; here they stand in it in base64.
 */
public class WriteVectors {
    static final ObjectMapper JSON = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    static final int UNKNOWN_TAG = 4000;
    /* An empty batch of version 2: a records field must at least be readable as records. */
    static final byte[] BATCH = HexFormat.of().parseHex(
        "0000000000000000000000310000000002595fb7dd" + "00".repeat(40));

    /** A message class of one release. */
    record Kind(String release, JsonNode schema, Class<?> type, Class<?> converter) {
        Object fresh() throws Exception {
            return type.getConstructor().newInstance();
        }

        short version(String which) throws Exception {
            return (short) type.getMethod(which + "SupportedVersion").invoke(fresh());
        }
    }

    /** The classes of one release, by message name. */
    static Map<String, Kind> load(List<File> jars, String release) throws Exception {
        List<URL> urls = new ArrayList<>();
        for (File jar : jars) urls.add(jar.toURI().toURL());
        ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), WriteVectors.class.getClassLoader());
        Map<String, Kind> kinds = new TreeMap<>();
        for (File file : jars) {
            try (ZipFile jar = new ZipFile(file)) {
                Map<String, String> converters = new TreeMap<>();
                List<ZipEntry> schemas = new ArrayList<>();
                for (ZipEntry entry : (Iterable<ZipEntry>) () -> (java.util.Iterator<ZipEntry>) jar.entries().asIterator()) {
                    String name = entry.getName();
                    if (name.endsWith("JsonConverter.class") && !name.contains("$")) {
                        String type = name.substring(0, name.length() - "JsonConverter.class".length());
                        String message = type.substring(type.lastIndexOf('/') + 1);
                        converters.put(message, type.replace('/', '.'));
                    }
                    if (name.endsWith(".json")) schemas.add(entry);
                }
                for (ZipEntry entry : schemas) {
                    JsonNode schema;
                    try (InputStream in = jar.getInputStream(entry)) {
                        schema = JSON.readTree(in);
                    }
                    if (!schema.has("validVersions")) continue;
                    String message = schema.get("name").asText();
                    String type = converters.getOrDefault(message + "Data", converters.get(message));
                    if (type == null) continue;
                    kinds.put(message, new Kind(release, schema, loader.loadClass(type),
                        loader.loadClass(type + "JsonConverter")));
                }
            }
        }
        return kinds;
    }

    /** Builds the JSON of one instance from the schema. */
    static class Builder {
        final JsonNode schema;
        final short version;
        final boolean nulls;
        final int elements;
        int count = 0;

        Builder(JsonNode schema, short version, String variant) {
            this.schema = schema;
            this.version = version;
            nulls = variant.equals("nulls");
            elements = variant.equals("full") ? 2 : 1;
        }

        boolean in(JsonNode field, String key) {
            String range = field.path(key).asText("none");
            if (range.equals("none")) return false;
            Matcher m = Pattern.compile("(\\d+)(?:(\\+)|-(\\d+))?").matcher(range);
            if (!m.matches()) throw new IllegalArgumentException(range);
            int low = Integer.parseInt(m.group(1));
            int high = m.group(2) != null ? Short.MAX_VALUE : m.group(3) != null ? Integer.parseInt(m.group(3)) : low;
            return version >= low && version <= high;
        }

        JsonNode fieldsOf(JsonNode field, String type) {
            if (field.has("fields")) return field.get("fields");
            for (JsonNode common : schema.path("commonStructs"))
                if (common.get("name").asText().equals(type)) return common.get("fields");
            throw new IllegalArgumentException("no struct " + type);
        }

        boolean has(JsonNode field) {
            return in(field, field.has("versions") ? "versions" : "taggedVersions");
        }

        ObjectNode struct(JsonNode fields) {
            ObjectNode node = NODES.objectNode();
            for (JsonNode field : fields) {
                boolean tag = in(field, "taggedVersions");
                if (!has(field)) continue;
                boolean nullable = in(field, "nullableVersions");
                if (tag && nulls && !nullable) continue;
                String name = field.get("name").asText();
                name = Character.toLowerCase(name.charAt(0)) + name.substring(1);
                node.set(name, nulls && nullable ? NODES.nullNode() : value(field, field.get("type").asText()));
            }
            return node;
        }

        JsonNode value(JsonNode field, String type) {
            if (type.startsWith("[]")) {
                ArrayNode array = NODES.arrayNode();
                for (int i = 0; i < elements; i++) array.add(value(field, type.substring(2)));
                return array;
            }
            int n = ++count;
            switch (type) {
                case "bool": return NODES.booleanNode(true);
                case "int8": return NODES.numberNode((byte) (n % 3 == 0 ? -n : n));
                case "int16": return NODES.numberNode((short) (n % 3 == 0 ? -n * 300 : n * 259));
                case "uint16": return NODES.numberNode(65535 - n);
                case "int32": return NODES.numberNode(n % 3 == 0 ? -n * 70001 : n * 16843009);
                case "uint32": return NODES.numberNode(4294967295L - n);
                case "int64": return NODES.numberNode(n % 3 == 0 ? -n * 5000000001L : n * 72340172838076673L);
                case "float64": return NODES.numberNode(n + 0.1);
                case "uuid": return NODES.textNode(uuid(n));
                case "string": return NODES.textNode(text(n));
                case "bytes": return new BinaryNode(bytes(n));
                case "records": return new BinaryNode(BATCH);
                default: return struct(fieldsOf(field, type));
            }
        }

        /* Some beyond 127 bytes, where a compact length takes two; some not ASCII. */
        static String text(int n) {
            if (n % 11 == 0) return ("long " + n + " ").repeat(20);
            return n % 4 == 0 ? "\u00e4\u20ac\ud83d\ude00\"\\" + n : "t" + n;
        }

        static byte[] bytes(int n) {
            byte[] bytes = new byte[n % 7 == 0 ? 130 : n % 5 + 1];
            for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) (n * 31 + i * 7);
            return bytes;
        }

        static String uuid(int n) {
            ByteBuffer bytes = ByteBuffer.allocate(16).putLong(0x1122334455667788L + n).putLong(0x8877665544332211L + n);
            return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes.array());
        }
    }

    /** Put an unknown tagged field into a message and every struct below it. */
    static void addUnknownTags(Object message, Builder builder, JsonNode fields, int depth) throws Exception {
        int tag = UNKNOWN_TAG;
        if (depth > 0) {
            tag = 0;
            for (JsonNode field : fields) tag = Math.max(tag, field.path("tag").asInt(-1) + 1);
        }
        ClassLoader loader = message.getClass().getClassLoader();
        Object raw = loader.loadClass("org.apache.kafka.common.protocol.types.RawTaggedField")
            .getConstructor(int.class, byte[].class).newInstance(tag, new byte[] {1, 2, (byte) (3 + depth)});
        @SuppressWarnings("unchecked")
        List<Object> unknown = (List<Object>) message.getClass().getMethod("unknownTaggedFields").invoke(message);
        unknown.add(raw);
        for (JsonNode field : fields) {
            String type = field.get("type").asText();
            String element = type.startsWith("[]") ? type.substring(2) : type;
            if (!Character.isUpperCase(element.charAt(0)) || !builder.has(field)) continue;
            String name = field.get("name").asText();
            Method getter = message.getClass().getMethod(Character.toLowerCase(name.charAt(0)) + name.substring(1));
            Object value = getter.invoke(message);
            if (value == null) continue;
            Collection<?> all = value instanceof Collection<?> c ? c : List.of(value);
            for (Object one : all) addUnknownTags(one, builder, builder.fieldsOf(field, element), depth + 1);
        }
    }

    /** Kafka's JSON holds no bytes of records; put those in that were given. */
    static void addRecords(JsonNode out, JsonNode given) {
        if (given == null) return;
        if (out.isArray())
            for (int i = 0; i < out.size(); i++) addRecords(out.get(i), given.get(i));
        if (!out.isObject()) return;
        for (String name : (Iterable<String>) () -> given.fieldNames()) {
            JsonNode value = given.get(name);
            if (value.isBinary() && java.util.Arrays.equals(BATCH, ((BinaryNode) value).binaryValue()))
                ((ObjectNode) out).set(name, value);
            else if (out.has(name))
                addRecords(out.get(name), value);
        }
    }

    /* The encoder's name differs between the releases. */
    static byte[] encode(Kind kind, short version, Object message) throws Exception {
        ClassLoader loader = kind.type.getClassLoader();
        Class<?> base = loader.loadClass("org.apache.kafka.common.protocol.Message");
        Class<?> util = loader.loadClass("org.apache.kafka.common.protocol.MessageUtil");
        ByteBuffer buffer;
        try {
            Object accessor = util.getMethod("toByteBufferAccessor", base, short.class).invoke(null, message, version);
            buffer = (ByteBuffer) accessor.getClass().getMethod("buffer").invoke(accessor);
        } catch (NoSuchMethodException e) {
            buffer = (ByteBuffer) util.getMethod("toByteBuffer", base, short.class).invoke(null, message, version);
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static char verdict(Kind kind, short version, byte[] bytes) throws Exception {
        ClassLoader loader = kind.type.getClassLoader();
        Class<?> readable = loader.loadClass("org.apache.kafka.common.protocol.Readable");
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Object in = loader.loadClass("org.apache.kafka.common.protocol.ByteBufferAccessor")
            .getConstructor(ByteBuffer.class).newInstance(buffer);
        Object message = kind.fresh();
        try {
            kind.type.getMethod("read", readable, short.class).invoke(message, in, version);
        } catch (java.lang.reflect.InvocationTargetException refused) {
            return '0';
        }
        return buffer.remaining() == 0 ? '1' : '2';
    }

    static String flips(Kind kind, short version, String variant, byte[] bytes) throws Exception {
        StringBuilder verdicts = new StringBuilder();
        for (int bit = 0; bit < bytes.length * 8; bit++) {
            bytes[bit / 8] ^= (byte) (1 << bit % 8);
            verdicts.append(verdict(kind, version, bytes));
            bytes[bit / 8] ^= (byte) (1 << bit % 8);
        }
        return String.join("\t", kind.schema.get("name").asText(), "" + version, variant, verdicts) + "\n";
    }

    /** Bytes that no bit flip makes: overlong and overflowing varints, tags in any order, limits. */
    static final String[][] INPUTS = {
        {"HeartbeatRequest", "4", "820067" + "00000005" + "026d" + "0000", "W16 overlong length"},
        {"HeartbeatRequest", "4", "8280808000" + "6700000005026d0000", "W16 overlong length of five bytes"},
        {"HeartbeatRequest", "4", "828080808000" + "6700000005026d0000", "W16 six bytes"},
        {"HeartbeatRequest", "4", "8280808070" + "6700000005026d0000", "W16 bits beyond 32"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d" + "ffffffff0f" + "00", "W16 compact length -2"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d" + "8080808008" + "00", "W16 compact length 2^31-1"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d" + "8180808008" + "00", "W16 compact length -2^31"},
        {"HeartbeatRequest", "4", "00" + "00000005" + "026d0000", "W17 null where none may be"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "02" + "0500" + "0500", "W15 an unknown tag twice"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "02" + "0600" + "0500", "W15 unknown tags in no order"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "01" + "0502" + "00", "W15 a tag beyond the end"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "01" + "05ffffffff0f", "W15 tag size -1"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "ffffffff0f", "W14 tag count -1"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "01" + "ffffffff0f00", "W14 tag number 2^32-1"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "904e" + "0500".repeat(10000), "W14 as many tags as may be"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d00" + "914e" + "0500".repeat(10001), "W14 one tag more"},
        {"HeartbeatRequest", "4", "0267" + "00000005" + "026d0000" + "abcd", "W18 bytes left over"},
        {"HeartbeatRequest", "3", "000167" + "00000005" + "00016d" + "fffe", "W17 length -2 where null may be"},
        {"HeartbeatRequest", "3", "fffe" + "00000005" + "00016d" + "ffff", "W17 length -2 where none may be"},
        {"BrokerHeartbeatRequest", "0", "00".repeat(22) + "01" + "0001" + "01", "W15 a tag of a later version"},
        {"BrokerHeartbeatRequest", "1", "00".repeat(22) + "02" + "000101" + "000101", "W15 a known tag twice"},
        {"BrokerHeartbeatRequest", "1", "00".repeat(22) + "01" + "000701", "W15 a known tag of a wrong size"},
        {"BrokerHeartbeatRequest", "2", "00".repeat(22) + "02" + "010101" + "000101", "W15 known tags in no order"},
        {"BrokerHeartbeatRequest", "1", "00".repeat(22) + "01" + "000100", "W17 null in a tag that has none"},
        {"BrokerHeartbeatRequest", "2", "00".repeat(22) + "01" + "010100", "W17 null in a tag that has it"},
        {"BrokerHeartbeatRequest", "1", "00".repeat(20) + "02ff" + "00", "W18 booleans 2 and 255"},
        {"MetadataRequest", "4", "7fffffff" + "00".repeat(26), "W11 count beyond the bytes"},
        {"MetadataRequest", "4", "fffffffe" + "00", "W11 count -2 where null may be"},
        {"MetadataRequest", "0", "80000000", "W11 count -2^31"},
        {"OffsetFetchRequest", "1", "0000" + "00000001" + "0000" + "000f4240" + "00000000".repeat(1000000), "W12 a million elements"},
        {"OffsetFetchRequest", "1", "0000" + "00000001" + "0000" + "000f4241" + "00000000".repeat(1000001), "W12 one element more"},
        {"ConsumerGroupHeartbeatResponse", "0", "00".repeat(4) + "0000" + "0000" + "00".repeat(4) + "00000000" + "fe" + "00", "W17 mark -2 of a struct"},
        {"ConsumerGroupHeartbeatResponse", "0", "00".repeat(4) + "0000" + "0000" + "00".repeat(4) + "00000000" + "05" + "010000", "W17 mark 5 of a struct"},
        {"RequestHeader", "1", "000c" + "0004" + "00000001" + "fffe", "W10 client id of length -2"},
        {"RequestHeader", "2", "000c" + "0004" + "00000001" + "0002" + "c328" + "00", "W10 client id that is no UTF-8"},
        {"RequestHeader", "2", "000c" + "0004" + "00000001" + "7fff" + "61".repeat(10) + "00", "W10 client id beyond the frame"},
        {"RequestHeader", "2", "000c" + "0004" + "00000001" + "000161", "W9 header 1 where 2 is due"},
        {"RequestHeader", "1", "000c" + "0004" + "00000001" + "000161" + "00", "W9 header 2 where 1 is due"},
    };

    static String line(Kind kind, short version, String variant) throws Exception {
        Builder builder = new Builder(kind.schema, version, variant);
        JsonNode fields = kind.schema.get("fields");
        ObjectNode given = null;
        Object message;
        if (variant.equals("defaults")) {
            message = kind.fresh();
        } else {
            given = builder.struct(fields);
            message = kind.converter.getMethod("read", JsonNode.class, short.class).invoke(null, given, version);
        }
        if (variant.equals("tagged")) addUnknownTags(message, builder, fields, 0);
        byte[] bytes = encode(kind, version, message);
        JsonNode json = (JsonNode) kind.converter.getMethod("write", kind.type, short.class, boolean.class)
            .invoke(null, message, version, true);
        addRecords(json, given);
        return String.join("\t", kind.schema.get("name").asText(), "" + version, variant, kind.release,
            HexFormat.of().formatHex(bytes), JSON.writeValueAsString(json)) + "\n";
    }

    static boolean flexible(Kind kind, short version) {
        return new Builder(kind.schema, version, "full").in(kind.schema, "flexibleVersions");
    }

    /**
     * Does the older release's message live on otherwise? Keys of coordinator records have their number as API
     * key now, where it was their version; an API has been renamed; the records of share partitions are others.
     */
    static boolean superseded(Kind old, Map<String, Kind> newer) {
        String name = old.schema.get("name").asText(), type = old.schema.get("type").asText();
        if (name.startsWith("ShareGroupPartitionMetadata")) return true;
        Kind same = newer.get(name);
        if (same != null) return same.schema.get("type").asText().equals("coordinator-key");
        int key = old.schema.path("apiKey").asInt(-1);
        return key >= 0 && newer.values().stream().anyMatch(kind -> kind.schema.path("apiKey").asInt(-1) == key
            && kind.schema.get("type").asText().equals(type));
    }

    public static void main(String[] args) throws Exception {
        Map<String, List<File>> jars = new TreeMap<>();
        File[] files = new File(args[0]).listFiles();
        java.util.Arrays.sort(files);
        for (File jar : files) {
            Matcher m = Pattern.compile("kafka-.*-(\\d+\\.\\d+\\.\\d+)\\.jar").matcher(jar.getName());
            if (m.matches()) jars.computeIfAbsent(m.group(1), v -> new ArrayList<>()).add(jar);
        }
        for (File jar : files)
            if (!jar.getName().startsWith("kafka-")) jars.values().forEach(list -> list.add(jar));
        List<String> releases = new ArrayList<>(jars.keySet());
        String old = releases.get(0), fresh = releases.get(releases.size() - 1);
        Map<String, Kind> newer = load(jars.get(fresh), fresh), older = load(jars.get(old), old);

        Map<String, Map<Short, Kind>> all = new TreeMap<>();
        older.values().removeIf(kind -> superseded(kind, newer));
        for (Map<String, Kind> kinds : List.of(older, newer))
            for (Map.Entry<String, Kind> entry : kinds.entrySet())
                for (short v = entry.getValue().version("lowest"); v <= entry.getValue().version("highest"); v++)
                    all.computeIfAbsent(entry.getKey(), n -> new TreeMap<>()).put(v, entry.getValue());

        writeVectors(args[1], "Apache Kafka " + fresh + " and " + old, all);
        writeVerdicts(args[2], fresh, newer);
    }

    static void writeVerdicts(String path, String release, Map<String, Kind> kinds) throws Exception {
        int lines = 0;
        try (OutputStream out = new BufferedOutputStream(new GZIPOutputStream(Files.newOutputStream(Path.of(path))))) {
            String head = "# Apache Kafka " + release + ": message, version, variant or bytes, verdicts. Made by "
                + "test/java/vectors/WriteVectors.java.\n";
            out.write(head.getBytes(StandardCharsets.UTF_8));
            for (String[] input : INPUTS) {
                Kind kind = kinds.get(input[0]);
                char verdict = verdict(kind, Short.parseShort(input[1]), HexFormat.of().parseHex(input[2]));
                out.write((String.join("\t", input[0], input[1], input[2], "" + verdict, input[3]) + "\n").getBytes(StandardCharsets.UTF_8));
                lines++;
            }
            for (Kind kind : kinds.values()) {
                for (short v = kind.version("lowest"); v <= kind.version("highest"); v++) {
                    String variant = flexible(kind, v) ? "tagged" : "full";
                    byte[] bytes = HexFormat.of().parseHex(line(kind, v, variant).split("\t")[4]);
                    out.write(flips(kind, v, variant, bytes).getBytes(StandardCharsets.UTF_8));
                    lines++;
                }
            }
        }
        System.out.println(lines + " lines of verdicts");
    }

    static void writeVectors(String path, String releases, Map<String, Map<Short, Kind>> all) throws Exception {
        int lines = 0, refused = 0;
        try (OutputStream out = new BufferedOutputStream(new GZIPOutputStream(Files.newOutputStream(Path.of(path))))) {
            String head = "# " + releases
                + ": message, version, variant, release, bytes, JSON. Made by test/java/vectors/WriteVectors.java.\n";
            out.write(head.getBytes(StandardCharsets.UTF_8));
            for (Map.Entry<String, Map<Short, Kind>> message : all.entrySet()) {
                for (Map.Entry<Short, Kind> version : message.getValue().entrySet()) {
                    for (String variant : List.of("defaults", "full", "nulls", "tagged")) {
                        if (variant.equals("tagged") && !flexible(version.getValue(), version.getKey())) continue;
                        try {
                            out.write(line(version.getValue(), version.getKey(), variant).getBytes(StandardCharsets.UTF_8));
                            lines++;
                        } catch (java.lang.reflect.InvocationTargetException e) {
                            refused++;
                            System.out.println("refused " + message.getKey() + " " + version.getKey() + " " + variant + ": "
                                + e.getCause());
                        }
                    }
                }
            }
        }
        System.out.println(lines + " written, " + refused + " refused by Kafka");
    }
}
