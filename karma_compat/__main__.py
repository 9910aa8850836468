from karma_compat.run import main

main()
