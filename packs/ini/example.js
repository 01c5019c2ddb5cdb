import { parse, stringify } from "@packferry/ini";

const settings = parse("; note\ndebug = true\nport = 80\n[http]\nproxy = none\nhost[] = a\nhost[] = b\n[http.tls]\nstrict = false\n");
return { settings, text: stringify(settings, { whitespace: true, platform: "linux" }) };
