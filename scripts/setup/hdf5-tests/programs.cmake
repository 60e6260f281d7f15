# Which of HDF5's own test programs are ours, too: read by what compiles them (CMakeLists.txt here) and by what runs them
# (tests/clients). Every change runs the few; `make test-long` runs all.
#
# Left out: what needs other machines or services (mirror_vfd, hdfs, ros3, s3comms), and pairs of programs that HDF5's own
# shell scripts start side by side (swmr_*, vds_swmr_*, use_*, atomic_*, flushrefresh).

set(HDF5_TESTS_FEW testhdf5 objcopy dsets links dtypes)

set(HDF5_TESTS_MANY
  accum app_ref big bittests btree2 cache cache_api cache_image cache_logging cache_tagging chunk_info cmpd_dset
  cmpd_dtransform cork cross_read dangle del_many_dense_attrs direct_chunk dt_arith dtransform earray efc enc_dec_plist
  enc_dec_plist_cross_platform enum err_compat error_test event_set evict_on_close extend external external_env farray fheap
  file_image filenotclosed fillval filter_fail filter_plugin flush1 freespace getname gheap hyperslab istore lheap links_env mdset
  mf mount mtime ntypes objcopy_ref ohdr onion page_buffer select_io_dset set_extent stab swmr testmeta thread_id timer ttsafe
  twriteorder unlink unregister vds vds_env vfd vfd_plugin vol vol_plugin)

# hl/test; test_ds and test_image read files of the source tree.
set(HDF5_TESTS_HL
  test_ds test_dset_append test_file_image test_h5do_compat test_image test_ld test_lite test_packet test_table)
