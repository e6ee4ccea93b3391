package waits

// pageWaits are the leaves of a thread that waits for a bit of a page or a folio. (wait_on_page_*
// before 5.16.)
const pageWaits = "folio_wait_bit_common folio_wait_bit folio_wait_bit_killable wait_on_page_bit_common wait_on_page_bit " +
	"__folio_lock __folio_lock_killable __folio_lock_or_retry __lock_page folio_put_wait_locked migration_entry_wait migration_entry_wait_on_locked softleaf_entry_wait_on_locked " +
	"blk_io_schedule filemap_fault swap_read_folio do_swap_page folio_wait_writeback folio_wait_writeback_killable folio_wait_stable"

// sockWaits are the leaves of a thread that waits in a socket.
const sockWaits = "sk_wait_data __skb_wait_for_more_packets"

// helpers are functions that wait for whoever calls them. The kernel leaves most of them out of
// a stack (__sched), and which ones changes with the release.
const helpers = "wait_woken do_wait_intr do_wait_intr_irq bit_wait bit_wait_io bit_wait_timeout __wait_on_bit __wait_on_bit_lock out_of_line_wait_on_bit* " +
	"__wait_for_common wait_for_common* wait_for_completion* do_wait_for_common schedule* io_schedule* __schedule* __switch_to* context_switch " +
	"do_nanosleep usleep_range_state prepare_to_wait* __wait_on_freeze"

// table gives the kind of a wait by the names on its kernel stack. The first row that matches
// counts: rows go from the special to the general. Only functions stand here that the kernel
// does not leave out of a stack, the scheduler's and the locks' (in_sched_functions). Names are those of 6.1 to
// 7.3, and some older.
var table = [...]row{
	// The thread's own ends and stops.
	{kind: Userfault, leaf: "handle_userfault"},
	{kind: Frozen, leaf: "__refrigerator do_freezer_trap get_signal cgroup_enter_frozen"},
	{kind: Vfork, leaf: "wait_for_vfork_done kernel_clone _do_fork"},
	{kind: Namespace, leaf: "zap_pid_ns_processes do_wait kernel_wait4", within: "zap_pid_ns_processes"},
	{kind: ChildEnd, leaf: "do_wait kernel_wait4 kernel_waitid sys_wait4 sys_waitid"},
	{kind: Threads, leaf: "de_thread begin_new_exec flush_old_exec coredump_wait do_coredump vfs_coredump"},
	{kind: Workers, leaf: "io_wq_put_and_exit io_wq_exit_workers"},
	{kind: CoreDump, leaf: "coredump_task_exit do_exit exit_mm"},

	// Kernel threads at rest, by the function of their loop.
	{kind: AtRest, leaf: "worker_thread rescuer_thread kthreadd smpboot_thread_fn kthread_worker_fn irq_thread irq_wait_for_interrupt " +
		"kswapd kswapd_try_to_sleep kcompactd khugepaged khugepaged_wait_work ksm_scan_thread kdamond_fn kdamond_wait_activation kdamond_usleep oom_reaper kauditd_thread prune_tree_thread " +
		"rcu_gp_kthread rcu_tasks_one_gp rcu_tasks_kthread rcu_nocb_cb_kthread rcu_nocb_gp_kthread nocb_cb_wait nocb_gp_wait rcu_boost_kthread rcu_exp_gp_kthread " +
		"watchdog hwrng_fillfn devtmpfs_work_loop devtmpfsd __kthread_parkme kthread_parkme psi_rtpoll_worker psi_poll_worker hub_thread kprobe_optimizer_thread nbcon_kthread_func legacy_kthread_func printk_kthread_func " +
		"usb_stor_control_thread rfcomm_run cifs_demultiplex_thread pktgen_thread_worker sync_thread_master sync_thread_backup w1_process power_saving_thread"},
	{kind: AtRest, leaf: "kjournald2 xfsaild xfsaild_push transaction_kthread cleaner_kthread ext4_lazyinit_thread kmmpd gc_thread_func issue_discard_thread issue_flush_thread gfs2_logd gfs2_quotad " +
		"md_thread loop_thread loop_kthread_worker_fn dmcrypt_write scsi_error_handler ubi_thread svc_recv svc_get_next_xprt nfsd lockd nfs4_callback_svc " +
		"vhost_worker vhost_task_fn vhost_run_work_list io_wq_worker io_sq_thread napi_threaded_poll xenwatch_thread xenbus_thread ipmi_thread khvcd drm_sched_main " +
		"kvm_nx_huge_page_recovery_worker kvm_nx_lpage_recovery_worker kvm_vm_worker_thread_main balloon_thread taskq_thread jfsIOWait jfs_lazycommit jfs_sync"},

	// Names that tell all by themselves.
	{kind: Timer, leaf: "hrtimer_nanosleep common_nsleep common_nsleep_timens sys_nanosleep sys_clock_nanosleep alarm_timer_nsleep alarmtimer_do_nsleep " +
		"do_cpu_nanosleep posix_cpu_nsleep msleep msleep_interruptible usleep_range fsleep ssleep"},
	{kind: Signal, leaf: "do_sigtimedwait sys_rt_sigtimedwait sys_rt_sigtimedwait_time32 sys_rt_sigtimedwait_time64 sigsuspend sys_rt_sigsuspend sys_sigsuspend sys_pause"},
	{kind: Futex, leaf: "futex_do_wait futex_wait_queue futex_wait_queue_me futex_wait_multiple futex_wait_multiple_queue futex_sleep_multiple " +
		"__futex_wait futex_wait do_futex futex_wait_requeue_pi futex_lock_pi sys_futex sys_futex_waitv"},
	{kind: Poll, leaf: "ep_poll do_epoll_wait sys_epoll_wait sys_epoll_pwait poll_schedule_timeout do_select core_sys_select do_sys_poll do_poll"},
	{kind: IOUring, leaf: "io_cqring_wait io_cqring_wait_schedule io_uring_cancel_generic io_uring_del_tctx_node io_ring_exit_work io_sqpoll_wait_sq io_sq_thread_stop io_run_local_work sys_io_uring_enter"},
	{kind: FileLock, leaf: "posix_lock_inode_wait flock_lock_inode_wait locks_lock_inode_wait flock_lock_inode __break_lease do_lock_file_wait fcntl_setlk fcntl_setlk64 nlmclnt_lock nlmclnt_block"},
	{kind: VirtualCPU, leaf: "kvm_vcpu_block kvm_vcpu_halt kvm_vcpu_check_block kvm_arch_vcpu_ioctl_run vcpu_block"},
	{kind: IPC, leaf: "do_semtimedop __do_semtimedop do_msgrcv do_msgsnd wq_sleep do_mq_timedreceive do_mq_timedsend"},
	{kind: Terminal, leaf: "n_tty_read n_tty_write tty_wait_until_sent tty_port_block_til_ready tty_send_xchar n_hdlc_tty_read"},
	{kind: Pipe, leaf: "pipe_read pipe_write anon_pipe_read anon_pipe_write fifo_pipe_read fifo_pipe_write pipe_wait pipe_wait_readable pipe_wait_writable wait_for_partner fifo_open " +
		"splice_from_pipe_next splice_to_pipe wait_for_space ipipe_prep opipe_prep link_pipe"},

	// A mutex: what holds it is in the middle of a read, a write or a seek (fs/file.c).
	{kind: FilePosition, leaf: "fdget_pos __fdget_pos"},

	// File systems and servers whose waits have functions of their own.
	{kind: Descriptor, leaf: "fuse_dev_do_read fuse_dev_read fuse_dev_splice_read"},
	{kind: FUSE, leaf: "request_wait_answer fuse_*"},
	{kind: FUSE, leaf: pageWaits, within: "fuse_*"},
	{kind: NFS, leaf: "rpc_wait_bit_killable __rpc_execute rpc_wait_for_completion_task rpc_shutdown_client nfs_* nfs3_* nfs4_* pnfs_* nlmclnt_*"},
	{kind: NFS, leaf: pageWaits, within: "nfs_* nfs3_* nfs4_* pnfs_*"},
	{kind: FSFreeze, leaf: "percpu_rwsem_wait sb_wait_write freeze_super thaw_super", within: "mnt_want_write mnt_want_write_file __mnt_want_write sb_start_write __sb_start_write file_start_write kiocb_start_write " +
		"vfs_write vfs_writev do_iter_write vfs_fallocate vfs_truncate do_truncate do_ftruncate do_sys_ftruncate ksys_fallocate do_page_mkwrite iter_file_splice_write io_write do_sendfile vfs_copy_file_range freeze_super thaw_super " +
		"open_last_lookups ext4_page_mkwrite xfs_filemap_fault xfs_trans_alloc ext4_journal_check_start __ext4_journal_start_sb"},
	{kind: PercpuSem, leaf: "percpu_rwsem_wait cgroup_procs_write_start cgroup_attach_lock"},
	{kind: FileSystem, leaf: "jbd2_* __jbd2_* start_this_handle add_transaction_credits wait_transaction_locked wait_transaction_switching do_get_write_access " +
		"ext4_* __ext4_* xfs_* __xfs_* xlog_* btrfs_* __btrfs_* wait_current_trans wait_for_commit wait_extent_bit __start_delalloc* lock_extent* f2fs_* __f2fs_* ocfs2_* __ocfs2_* gfs2_* reiserfs_* bch2_* __bch2_* " +
		"cifs_* smb2_* smb_* wait_for_response wait_for_free_request compound_send_recv ceph_* __ceph_* rbd_* p9_* v9fs_* afs_* netfs_* fscache_* __fscache_* orangefs_* ubifs_* erofs_* z_erofs_* dlm_* ntfs_* exfat_* " +
		"cv_wait_common txg_* zfs_* zil_* dmu_* __cv_* overlayfs_* autofs_wait autofs4_wait"},
	{kind: FileSystem, leaf: "__wait_on_freeing_inode wait_on_inode find_inode find_inode_fast iget_locked iget5_locked ilookup d_alloc_parallel d_wait_lookup inode_dio_wait __inode_dio_wait wait_on_inode_dio grab_super super_lock super_lock_excl inode_sleep_on_dio"},

	// Block devices.
	{kind: BlockIO, leaf: "submit_bio_wait bio_await bio_wait __submit_bio_wait blk_wait_io blk_execute_rq blk_mq_get_tag blk_mq_freeze_queue_wait blk_mq_freeze_queue blk_mq_freeze_queue_wait_timeout __bio_queue_enter bio_queue_enter blk_queue_enter " +
		"rq_qos_wait wbt_wait blk_throtl_* __blk_throtl_bio blkcg_maybe_throttle_current blkdev_issue_* __blkdev_issue_* blkdev_direct_IO __blkdev_direct_IO* __iomap_dio_rw iomap_dio_rw iomap_dio_complete " +
		"dio_await_completion do_blockdev_direct_IO __blockdev_direct_IO __wait_on_buffer __lock_buffer __bread_gfp __bh_read bh_submit_read mempool_alloc* bdev_* blkdev_* bd_* disk_* del_gendisk elevator_*"},
	{kind: BlockIO, leaf: "md_* raid0_* raid1_* raid10_* raid5_* raid456_* wait_barrier freeze_array make_stripe_request dm_* __dm_* dm_wait_for_* scsi_* sd_* nvme_* virtblk_* ublk_* nbd_* loop_* lo_* drbd_* mmc_* __mmc_* ata_* cache_* bch_*"},
	{kind: BlockIO, leaf: "blk_io_schedule", within: "blkdev_* iomap_dio_* __iomap_dio_rw submit_bio_wait swap_read_folio"},

	// Memory.
	{kind: Memory, leaf: "throttle_direct_reclaim reclaim_throttle congestion_wait wait_iff_congested mem_cgroup_handle_over_high __mem_cgroup_handle_over_high mem_cgroup_oom_synchronize out_of_memory pagefault_out_of_memory " +
		"__alloc_pages_slowpath compact_zone too_many_isolated shrink_inactive_list shrink_folio_list do_madvise_collapse hugetlb_* alloc_hugetlb_folio"},
	{kind: Memory, leaf: pageWaits, within: "try_to_free_pages try_to_free_mem_cgroup_pages shrink_node shrink_lruvec balance_pgdat compact_zone migrate_pages migrate_pages_batch"},

	// Pages.
	{kind: Writeback, leaf: "balance_dirty_pages balance_dirty_pages_ratelimited balance_dirty_pages_ratelimited_flags wb_wait_for_completion wait_sb_inodes sync_inodes_sb __writeback_inodes_sb_nr inode_sleep_on_writeback __inode_wait_for_writeback " +
		"__filemap_fdatawait_range filemap_fdatawait_range inode_wait_for_writeback"},
	{kind: Writeback, leaf: pageWaits, within: "folio_wait_writeback folio_wait_writeback_killable wait_on_page_writeback folio_wait_stable wait_for_stable_page __filemap_fdatawait_range filemap_fdatawait_range"},
	{kind: PageFault, leaf: pageWaits, within: "handle_mm_fault __handle_mm_fault hugetlb_fault"},
	{kind: PageLock, leaf: pageWaits},

	// The rest of the kernel.
	{kind: RCU, leaf: "synchronize_rcu* __wait_rcu_gp wait_rcu_gp rcu_barrier rcu_barrier_* synchronize_srcu* __synchronize_srcu srcu_barrier rcu_exp_* exp_funnel_lock rcu_gp_fqs_loop rcu_gp_fqs rcu_gp_init rcu_gp_cleanup kvfree_rcu_barrier* synchronize_net " +
		"rcu_tasks_wait_gp rcu_tasks_rude_wait_gp rcu_tasks_postscan synchronize_rcu_tasks* check_all_holdout_tasks"},
	{kind: Workqueue, leaf: "__flush_work flush_work __flush_workqueue flush_workqueue drain_workqueue __cancel_work_timer __cancel_work_sync cancel_work_sync flush_delayed_work flush_rcu_work kthread_flush_work kthread_flush_worker " +
		"__kthread_cancel_work_sync lru_add_drain_all __lru_add_drain_all drain_all_pages __drain_all_pages async_synchronize_cookie_domain work_on_cpu"},
	{kind: Completion, leaf: "kthread_stop kthread_park __kthread_create_on_node kthread_create_on_node call_usermodehelper_exec cpuhp_kick_ap cpuhp_kick_ap_work __cpuhp_kick_ap stop_one_cpu __stop_cpus stop_machine_cpuslocked affine_move_task " +
		"set_cpus_allowed_ptr devtmpfs_submit_req wait_for_device_probe idempotent_init_module finished_loading crypto_wait_req device_block_probing usb_start_wait_urb usb_kill_urb wait_for_initramfs synchronize_irq sched_exec"},
	{kind: Netlink, leaf: sockWaits + " netlink_*", within: "netlink_*"},
	{kind: Socket, leaf: sockWaits},
	{kind: Socket, leaf: "sk_stream_wait_memory sk_stream_wait_connect sk_stream_wait_close sock_alloc_send_pskb inet_csk_accept inet_csk_wait_for_connect inet_wait_for_connect inet_stream_connect __inet_stream_connect inet_accept " +
		"unix_wait_for_peer unix_stream_* unix_dgram_* unix_accept wait_for_unix_gc tcp_* udp_* raw_* packet_* vsock_* __vsock_* __lock_sock lock_sock_nested kcm_* af_alg_* sctp_* smc_* xsk_* can_* rds_* tipc_* bt_* __skb_recv_datagram skb_recv_datagram __skb_recv_udp"},
	{kind: Descriptor, leaf: "eventfd_read eventfd_write eventfd_ctx_do_read timerfd_read timerfd_read_iter inotify_read fanotify_read signalfd_read signalfd_read_iter signalfd_dequeue userfaultfd_read userfaultfd_read_iter userfaultfd_ctx_read " +
		"read_events aio_* perf_read ring_buffer_wait tracing_read_pipe tracing_wait_pipe tun_do_read tun_ring_recv tap_do_read evdev_read input_* hidraw_read snd_* do_syslog syslog_print devkmsg_read seccomp_* wait_for_random_bytes random_read* " +
		"rfkill_fop_read drm_read vcs_read apm_read kmsg_read event_read uinput_read ppp_read rtc_dev_read cuse_* vfio_* binder_* iio_* v4l2_* vb2_* virtio_* vmci_* port_fops_read wait_port_writable hwrng rng_dev_read"},
	{kind: RWSem, leaf: "do_user_addr_fault lock_mm_and_find_vma vm_mmap_pgoff __vm_munmap do_mprotect_pkey sys_brk dup_mmap exit_mmap"},
}
