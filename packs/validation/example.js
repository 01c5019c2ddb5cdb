import validator from "@packferry/validation";

return {
  mail: ["ada@example.org", "ada@", "a b@example.org"].map((text) => validator.isEmail(text)),
  iban: ["DE89370400440532013000", "DE89370400440532013001"].map((text) => validator.isIBAN(text)),
  url: ["https://example.org/a?b=c", "example"].map((text) => validator.isURL(text)),
  date: ["2025-02-28", "2025-02-30"].map((text) => validator.isISO8601(text, { strict: true })),
  card: validator.isCreditCard("4111 1111 1111 1111"),
  normal: validator.normalizeEmail("Ada.L+news@GMAIL.com"),
  escaped: validator.escape("<b>it's</b>"),
};
