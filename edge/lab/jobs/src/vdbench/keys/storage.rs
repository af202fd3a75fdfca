//! Parameters of storage definitions.

use super::Apply::{Bytes, Set};
use super::{REPLAY, Rule, set};
use crate::keys::within;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &within("sd", [
    Rule::structure("sd", "Storage definition. `default` applies to the definitions below it."),
    Rule::carried("lun", "Device or file.", Set(|reader, parameter, _| {
        if reader.in_default {
            return Err(parameter.refused("Vdbench allows no lun= in sd=default", "write lun= in each sd="));
        }
        reader.sd().luns.push(parameter.one()?.to_owned());
        Ok(())
    })),
    Rule::carried("host", "Hosts that have the device, in pairs with lun=, all by default.", Set(|reader, parameter, _| {
        let hosts = parameter.names(reader.job.host_names())?;
        reader.sd().hosts.push(hosts);
        Ok(())
    })).or(&["hd"]),
    Rule::carried("size", "Bytes in use. A new file gets this size. A second number divides the first.", Set(|reader, parameter, _| {
        set(&mut reader.sd().size, parameter.divided().map(|[size, parts]| Some(size / parts)))
    })),
    Rule::carried("openflags", "o_direct, directio, o_sync, o_dsync, fsync.", Set(|reader, parameter, findings| {
        set(&mut reader.sd().flags, parameter.flags(findings))
    })),
    Rule::carried("threads", "Outstanding I/Os, 8 by default. A second number divides the first.", Set(|reader, parameter, _| {
        let [threads, parts] = parameter.divided()?;
        set(&mut reader.sd().threads, parameter.count_of(&(threads / parts).to_string()))
    })),
    Rule::carried("range", "Part of the device, in percent or (above 200) in bytes.", Set(|reader, parameter, _| {
        set(&mut reader.sd().part, parameter.part().map(Some))
    })),
    Rule::carried("hitarea", "Size of the area for cache hits, 1m by default.", Bytes(|sd, bytes| sd.hit_area = bytes)),
    Rule::carried("offset", "Start of the device, in bytes.", Bytes(|sd, bytes| sd.offset = bytes)),
    Rule::carried("align", "Alignment of random I/Os, in bytes.", Set(|reader, parameter, _| {
        set(&mut reader.sd().align, parameter.block_of(parameter.one()?).map(Some))
    })),
    Rule::carried("count", "Number of definitions that the line makes: (first,count).", Set(|reader, parameter, _| {
        let [first, count] = parameter.values.as_slice() else {
            return Err(parameter.refused("Vdbench expects two numbers", "write count=(1,5)"));
        };
        let (first, count) = (parameter.bytes_of(first)?, parameter.count_of(count)?);
        reader.sd().count = Some((first, u64::from(count)));
        Ok(())
    })),
    Rule::refused("streams", "Vdbench allows streams= in workload definitions. Write a workload with range= for each stream."),
    Rule::refused("replay", REPLAY),
    Rule::refused("resetbus", "The lab resets no bus and no device. Remove resetbus= and resetlun=.").or(&["resetlun"]),
    Rule::refused("dedupratio", "The lab has one deduplication for all devices. Write the key among the general parameters.")
        .or(&["dedupsets", "dedupunit"]),
    Rule::noted("journal", "Journal for data validation.").or(&["journal_max"]),
    Rule::noted("instance", "Name for reports.").or(&["kstat"]),
]);
