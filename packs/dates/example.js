import { addBusinessDays, differenceInCalendarDays, formatISO, getISOWeek, parse, parseISO } from "@packferry/dates";

const start = parseISO("2025-03-07");
const due = addBusinessDays(start, 3);
return {
  due: formatISO(due, { representation: "date" }),
  days: differenceInCalendarDays(due, start),
  week: getISOWeek(due),
  parsed: formatISO(parse("07.03.2025", "dd.MM.yyyy", new Date(2000, 0, 1)), { representation: "date" }),
};
