import { Decimal } from "@packferry/decimal";

const Precise = Decimal.clone({ precision: 50, rounding: Decimal.ROUND_HALF_EVEN });
return {
  total: new Decimal("0.1").plus("0.2").toString(),
  gross: new Decimal("19.99").times("1.19").toDecimalPlaces(2).toString(),
  root: new Precise(2).sqrt().toString(),
  sine: new Precise("0.5").sin().toString(),
};
