package org.apache.kafka.common.utils;

/** Where the file connectors of 4.3 ask for their version; Kafka's clients of 4.4 have this class elsewhere. */
public class AppInfoParser {
    public static String getVersion() {
        return "4.3.1";
    }
}
