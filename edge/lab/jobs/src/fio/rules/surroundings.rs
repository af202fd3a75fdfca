//! What surrounds the I/Os: processors, memory, other engines, logs. None of it changes which I/Os a job does.

use super::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::noted("thread", "Threads in place of processes. The lab always uses threads.")
        .or(&["threads"])
        .alone(),
    Rule::noted("lockmem", "Locked memory that takes part of the machine's memory away."),
    Rule::noted("mem", "Where I/O buffers are allocated.").or(&["iomem"]),
    Rule::noted("iomem_align", "Alignment of I/O buffers. The lab aligns them to 4 KiB.").or(&["mem_align"]),
    Rule::noted("hugepage-size", "Size of huge pages for I/O buffers."),
    Rule::noted("clocksource", "Clock of the measurement. The lab uses CLOCK_MONOTONIC."),
    Rule::noted(
        "gtod_reduce",
        "Leaves measurements out. The lab always measures latency and bandwidth of every I/O.",
    )
    .alike("gtod_cpu disable_lat disable_clat disable_slat disable_bw_measurement disable_bw"),
    Rule::noted(
        "cpumask",
        "Processors of the job. Set them for the lab's process, for example with taskset.",
    )
    .alike("cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy nice"),
    Rule::noted("prio", "Priority or hint of I/Os. The lab submits all I/Os alike.")
        .or(&["prioclass", "priohint"]),
    Rule::noted("uid", "User, group or control group of the job. Start the lab under them.")
        .alike("gid cgroup cgroup_weight cgroup_nodelete"),
    Rule::noted("ioscheduler", "Scheduler of the device. Set it before the run."),
    Rule::noted("exec_prerun", "Command before or after the job. Run it yourself.").or(&["exec_postrun"]),
    Rule::noted("continue_on_error", "Errors that the job survives. Use --continue-on-error of the run.")
        .or(&["ignore_error"]),
    Rule::noted("error_dump", "Prints errors. The lab reports all of them."),
    Rule::noted("exitall_on_error", "Ends all jobs after an error. The lab does so unless told otherwise.")
        .alone(),
    Rule::refused("create_only", "Only creates the files. Use `drystone lab prepare`."),
    Rule::refused("profile", "Built-in set of options. Write the options themselves."),
    Rule::carried("kb_base", "Whether k is 1024 or 1000.", |_, value, _| {
        value.one_of(&[("1000", ()), ("1024", ())])
    }),
    Rule::noted("unit_base", "Whether results count bits or bytes. The lab counts bytes."),
    Rule::carried("description", "Description of the job.", |_, _, _| Ok(())),
    Rule::noted("comm", "Process name of the job."),
    Rule::noted("group_reporting", "How results are grouped. The lab reports every group and their sum.")
        .or(&["new_group"])
        .alone(),
    Rule::noted("stats", "Which results are printed. The lab reports every group and their sum.").or(&[
        "unified_rw_reporting",
        "disk_util",
        "significant_figures",
    ]),
    Rule::noted("clat_percentiles", "Percentiles to print. The lab keeps the whole histogram.")
        .alike("lat_percentiles slat_percentiles percentile_list block_error_percentiles"),
    Rule::noted("write_lat_log", "Log files. The lab keeps a histogram of every second.").alike(
        "write_bw_log write_iops_log write_hist_log write_iolog per_job_logs bwavgtime iopsavgtime \
         log_entries log_avg_msec log_hist_msec log_hist_coarseness log_max_value log_offset log_prio \
         log_compression log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch \
         log_alternate_epoch_clock_id log_window_value log_issue_time job_start_clock_id",
    ),
    Rule::noted(
        "hipri",
        "How an I/O engine polls or hands over I/Os. The lab sets this itself, so processor time may differ.",
    )
    .alike("fixedbufs registerfiles sqthread_poll userspace_reap")
    .alone(),
    Rule::noted(
        "hipri_percentage",
        "How an I/O engine polls or hands over I/Os. The lab sets this itself, so processor time may differ.",
    )
    .alike("sqthread_poll_cpu nonvectored uncached nowait force_async thp"),
    Rule::noted("cmdprio_percentage", "Priority of some I/Os. The lab submits all I/Os alike.")
        .alike("cmdprio cmdprio_class cmdprio_hint cmdprio_bssplit"),
    Rule::noted("cmd_type", "Commands passed through to a device. The lab reads and writes blocks.").alike(
        "md_per_io_size pi_act pi_chk apptag apptag_mask readfua writefua write_mode verify_mode \
         sg_write_mode",
    ),
    Rule::noted("rbdname", "What an I/O engine of fio connects to. Name the lab's target with --target.")
        .alike(
            "pool clientname clustername busy_poll touch_objects conf volume brick hostname port protocol \
         proto http_host https http_mode http_user http_pass http_object_mode http_s3_key http_s3_keyid \
         http_s3_region http_s3_sse_customer_algorithm http_s3_sse_customer_key http_s3_storage_class \
         http_s3_security_token http_swift_auth_token http_verbose libblkio_driver libblkio_path \
         libblkio_pre_connect_props libblkio_pre_start_props libblkio_num_entries libblkio_queue_size \
         libblkio_vectored libblkio_write_zeroes_on_trim libblkio_wait_mode \
         libblkio_force_enable_completion_eventfd nfs_url namenode skip_bad single-instance gpu_dev_ids \
         cuda_io cont svcl object_class chunk_size stream_id xnvme_be xnvme_async xnvme_sync xnvme_admin \
         xnvme_dev_nsid xnvme_dev_subnqn xnvme_mem xnvme_iovec",
        ),
    Rule::noted("cpuload", "Part of an I/O engine of fio that the lab does not have.").alike(
        "cpuchunks cpumode exit_on_io_done arguments program grace_time std_redirect donorname inplace \
         interface ttl window_size mss nodelay verb bindname gpu_dev_id hdfsdirectory stat_type read_mode \
         libaio_vectored rbd_encryption_format rbd_encryption_passphrase verify_bytchk cdb_len rocm_io",
    ),
    Rule::noted("listen", "Part of the engines net and windowsaio.")
        .or(&["pingpong", "no_completion_thread"])
        .alone(),
];
