import { RRule, datetime, rrulestr } from "@packferry/recurrence";

const rule = new RRule({ freq: RRule.MONTHLY, byweekday: [RRule.FR.nth(-1)], count: 3, dtstart: datetime(2025, 1, 1) });
const weekly = rrulestr("DTSTART:20250303T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE;COUNT=4");
return { last: rule.all().map((day) => day.toISOString()), text: rule.toText(), weekly: weekly.all().map((day) => day.toISOString()) };
