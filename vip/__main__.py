"""``python -m vip``: the ``vip`` command."""

from vip_rooms import main

if __name__ == "__main__":
    main()
